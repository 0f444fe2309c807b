"""Faults of PEs in words. A race is two unordered accesses to a byte, each with its PE, place and purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npukit.board.noc import DESCRIPTOR_BYTES
from npukit.emulator.messages import Note, last_messages, message, place
from npukit.emulator.program import object_at, where
from npukit.errors import NpukitError

_KINDS = {
    1: "an undefined instruction",
    2: "a load from address {address:#010x}, where nothing is",
    3: "a store to address {address:#010x}, where nothing is or nothing may be stored",
    4: "a jump to address {address:#010x}, where it has no code",
    5: "an access to a peripheral register that is not an aligned word (offset {address:#x})",
    6: "an SVC instruction, for which the board has no handler",
    7: "a breakpoint",
    8: "an exception return outside an exception",
    9: "something the emulated core cannot do",
    10: "an access to several words at address {address:#010x}, which is not a multiple of 4",
    11: "the stack overflows: its pointer would be {address:#010x}",
    12: "a store to address {address:#010x} in the code of PE {other}, which runs",
    13: "its DMA would write to address {address:#010x} in the code of PE {other}, which runs",
    14: "a store to address {address:#010x} in its own code",
    15: "an FPU instruction before CPACR enables the FPU",
    16: "a doorbell without a barrier after the last store to memory: what it hands over may not be there yet",
    17: "a WFI that nothing ends: no interrupt is pending, and none will be that is enabled",
    18: "{what} ({address:#010x}), which its manual leaves undefined",
    19: "a load from address {address:#010x}, which holds what it held at power-on: it was never written",
    20: "its DMA would read address {address:#010x} of PE {other}, which was not written since power-on",
    21: "an accelerator would read address {address:#010x}, which was not written since power-on",
    22: "an accelerator would write to address {address:#010x} in its own code",
    24: "the function at {address:#010x}{function} returned with {what} changed, which it is to leave as it was",
}
"""Texts by `enum fault_kind` in npukit_emulator/core/pe.h."""

_CHANGED, _RACE, DIFFERS = 24, 23, 25
_CORE, _FETCH, _LANDING, _WORK, _WINDOW_LOAD, _WINDOW_STORE = range(1, 7)
"""`enum deed_kind` in npukit_emulator/core/races.h."""
_LR, _PC = 14, 15
_CALL_BYTES = 2


@dataclass(frozen=True)
class AddressNames:
    """Names of addresses in a board's programs and accelerators."""

    elf: Callable[[int], Path | None]
    """ELF file of each PE."""
    accelerators: Sequence[str]

    def object(self, pe: int, address: int) -> str:
        elf = self.elf(pe)
        return (object_at(elf, address) if elf else "") or f"{address:#x}"

    def instruction(self, pe: int, pc: int) -> str:
        elf = self.elf(pe)
        return f"pc {pc:#x} {where(elf, pc) if elf else ''}".rstrip()


class CoreFault(NpukitError):
    """A PE has done something forbidden. The board halts. `cycles`: first and last of the work in which RTL and model
    differ, for a fault of this kind."""

    def __init__(self, message: str, pe: int, facts: Sequence[str], cycles: tuple[int, int] | None = None) -> None:
        debugger, waves = f"npukit run BUILD ... --gdb PORT --gdb-pe {pe}", "npukit validate BUILD --on rtl"
        super().__init__(message, facts=facts, tries=[f"{waves}: names the command for waves" if cycles else debugger])
        self.pe, self.cycles = pe, cycles


def explain(
    fault: dict[str, Any], names: Sequence[str], programs: AddressNames, notes: Sequence[Note], layer: str = ""
) -> CoreFault:
    """The error for a fault: the PE, the place and the reason. `names`: of the registers. `layer`: of the command
    with a difference between RTL and model."""
    pe, registers = fault["pe"], fault["registers"]
    facts = [f"registers: {in_words(names, registers)}", *last_messages(notes, (pe,))]
    if fault["kind"] == _RACE:
        sides = {side["pe"] for side in fault["race"]["sides"]}
        return CoreFault(f"PE {pe} stopped: {race_text(fault['race'], programs)}", pe, last_messages(notes, sides))
    if fault["kind"] == DIFFERS:
        device, command = programs.accelerators[fault["other"]], programs.object(pe, fault["address"])
        work = f"the command {command}" if fault["address"] else f"the work begun in cycle {fault['since']}"
        work = f"layer {layer}, command {command}" if layer else work
        told = f"the RTL of {device} differs from its model in {work}: {fault['what']}"
        return CoreFault(f"PE {pe} stopped: {told}", pe, facts, (fault["since"], fault["now"]))
    elf = programs.elf(pe)
    function = where(elf, fault["address"]) if elf and fault["kind"] == _CHANGED else ""
    why = _KINDS[fault["kind"]].format(**fault, function=f", {function}," if function else "")
    return CoreFault(f"PE {pe} stopped at pc {registers[_PC]:#010x}{_place(registers, elf)}: {why}", pe, facts)


def in_words(names: Sequence[str], registers: Sequence[int]) -> str:
    """Values of the named registers; later registers are left out."""
    return " ".join(f"{name}={value:#x}" for name, value in zip(names, registers, strict=False))


def _place(registers: Sequence[int], elf: Path | None) -> str:
    """Function and line of the pc. Outside any function: of the call that set the link register."""
    if elf is None:
        return ""
    if place := where(elf, registers[_PC]):
        return f" in {place}"
    caller = where(elf, (registers[_LR] & ~1) - _CALL_BYTES)
    return f", outside its code (lr: behind {caller})" if caller else ", outside its code"


def race_text(race: Mapping[str, Any], names: AddressNames) -> str:
    """A sentence with both accesses, the earlier first."""
    spot = f"address {race['address']:#x} of {place(race['place'])}"
    first, second = (_side(side, race["address"], names) for side in race["sides"])
    return f"a race on {spot}: {first}, then {second}, and nothing orders the two"


def _side(side: Mapping[str, int], address: int, names: AddressNames) -> str:
    pe, at = side["pe"], side["address"]
    does = "stores" if side["stores"] else "loads"
    if side["kind"] in (_CORE, _WINDOW_LOAD, _WINDOW_STORE):
        return f"the core of PE {pe} {does} it at {names.instruction(pe, at)}"
    if side["kind"] == _WORK:
        return f"{names.accelerators[side['device']]} of PE {pe} {does} it for the command {names.object(pe, at)}"
    part = "its descriptor" if side["kind"] == _FETCH and 0 <= address - at < DESCRIPTOR_BYTES else "it"
    return f"the DMA of PE {pe} {does} {part} for {message(side['tag'])}, descriptor {names.object(pe, at)}"
