# SPDX-License-Identifier: GPL-2.0-only
"""The emulated board: a mesh of the C core, set up from the board file and the programs."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from npukit_emulator import blocks, riscv
from npukit_emulator.blocks import BlockCosts, core_register
from npukit_emulator.compiler import core_library, device_library
from npukit_emulator.library import (
    REGISTERS,
    Counters,
    Decode,
    Extent,
    Fault,
    Injection,
    Joint,
    Memory,
    Need,
    Note,
    Progress,
    Wait,
    figure_array,
    load_core,
    unicorn_functions,
)
from npukit_emulator.words import MOST_NEEDS

OUTCOMES = ("cycle", "output", "idle", "fault", "time", "restart", "power cut", "stop", "watchdog")
RULES = ("page", "set", "same", "pe", "restart", "start")
"""Names of `enum rule_kind`, in its order."""
_NEVER = (1 << 64) - 1
_MOST_MEMORIES = 6
_MOST_OUTPUT = 1 << 16
_MOST_RECORDS = 1 << 16
_RECORD_BYTES = 40
_LAYER_BYTES = 12
_MOST_NOTES = 1024
_ANY = (1 << 32) - 1
_UNSAID = {"at": _NEVER, "packet": _NEVER, "bit": _NEVER, "source": _ANY, "destination": _ANY, "tag": _ANY}


class CannotStart(Exception):
    """The board could not be set up. The text is the reason."""


class NoSuchPe(Exception):
    """A PE that the board does not have. The core's functions do not check PE numbers."""


@dataclass(frozen=True)
class Accelerator:
    """An accelerator of all PEs except `lacking`. `library`: a third party's model; npukit's own models are in the
    core."""

    name: str
    base: int
    figures: Mapping[str, int]
    library: str | None = None
    lacking: Sequence[int] = ()


_FAMILIES = ("cortex_m", "riscv")
"""Instruction sets, by their number in `mesh_set_core`."""


@dataclass(frozen=True)
class Core:
    """The core of some PEs. `model`: Unicorn's CPU number. `family`: instruction set. `refill_cycles`: extra cycles
    of a taken branch.

    `cycles`: cycles of instructions, by name, that differ from the architecture's usual core.
    """

    pes: Sequence[int]
    model: int
    family: str
    refill_cycles: int
    cycles: Mapping[str, int]


@dataclass(frozen=True)
class Program:
    """A program of some PEs. 0 is unknown.

    `stack_bottom`: the end of the stack. `code`, `arena`: ranges of code and activations. `functions`: addresses of
    functions. `polled`: ranges of words accessed like registers.
    """

    pes: Sequence[int]
    stack_bottom: int = 0
    code: Sequence[int] = (0, 0)
    arena: Sequence[int] = (0, 0)
    functions: Sequence[int] = ()
    polled: Sequence[Sequence[int]] = ()


class Flash:
    """The flash of a board, kept in a file of the same length."""

    def __init__(self, file: str, figures: Mapping[str, int]) -> None:
        self.figures = figures
        with open(file, "r+b") as stream:
            self._bytes = mmap.mmap(stream.fileno(), figures["bytes"])
        self.memory = (ctypes.c_ubyte * figures["bytes"]).from_buffer(self._bytes)


class EmulatedBoard:
    """A board in its present state: PEs, their memories and devices."""

    def __init__(
        self,
        figures: Mapping[str, int],
        cores: Sequence[Core],
        accelerators: Sequence[Accelerator],
        memories: Sequence[Sequence[int]],
        rules: Sequence[tuple[str, int, int]] = (),
    ) -> None:
        """`memories`: base, size and waits of each, as in `Memory`, the memory with the code first. `rules`: a name of
        `RULES`, a register's address and a value."""
        self._core = load_core(core_library())
        self._unicorn = unicorn_functions()
        self._kept: list[Any] = []
        self._strict = False
        self._pe_count = _pe_count(figures)
        sizes = {
            "memory_count": len(memories),
            "code_bytes": memories[0][1],
            "sram_bytes": sum(size for _, size, *_ in memories),
        }
        if len(memories) > _MOST_MEMORIES:
            raise CannotStart(f"the board has {len(memories)} memories, more than {_MOST_MEMORIES}")
        array = self._keep(figure_array({**figures, **sizes}))
        places = (Memory * len(memories))(*(Memory(*memory) for memory in memories))
        functions = ctypes.cast(self._unicorn, ctypes.c_void_p)
        self._mesh = self._core.mesh_new(array, len(array), places, functions)
        if not self._mesh:
            missing = self._core.mesh_missing_figure()
            raise CannotStart(f"the board has no figure {missing.decode()}" if missing else "out of memory")
        for core in cores:
            self._set_core(core)
        for accelerator in accelerators:
            self._attach(accelerator)
        for kind, address, value in rules:
            if not self._core.mesh_add_rule(self._mesh, RULES.index(kind), address, value):
                raise CannotStart("the board's file says more of registers than the emulator can keep")

    def set_dead(self, pes: Sequence[int], links: Sequence[Sequence[int]]) -> None:
        for pe in pes:
            self._core.mesh_set_pe_dead(self._mesh, self._pe(pe))
        for pe, other in links:
            self._core.mesh_set_link_dead(self._mesh, self._pe(pe), self._pe(other))

    def set_memory(self, pe: int, size: int) -> None:
        """Gives a PE a smaller first memory than the others. Before PEs are powered up."""
        self._core.mesh_set_memory(self._mesh, self._pe(pe), size)

    def set_workers(self, workers: int) -> None:
        """Sets the number of host cores that run PEs; results do not depend on it. Before the board runs."""
        self._core.mesh_set_workers(self._mesh, workers)

    def be_strict(self, races: bool) -> None:
        """Turns into faults: reads of unwritten memory; functions that change registers to be preserved; with `races`,
        unordered accesses of memory. Before PEs are powered up."""
        self._strict = True
        self._core.mesh_be_strict(self._mesh, races)

    def inject(self, seed: int, injections: Sequence[Mapping[str, int]]) -> None:
        """Sets the plan of faults. Before the board runs."""
        lines = [Injection(**{**_UNSAID, **injection}) for injection in injections]
        self._core.mesh_inject(self._mesh, (Injection * len(lines))(*lines), len(lines), seed)

    def disturb(self, seed: int) -> None:
        """Disturbs the timing from this cycle on, by a seed; 0: timing of the hardware manual."""
        self._core.mesh_disturb(self._mesh, seed)

    def power_up(self, root: int, programs: Sequence[Program]) -> None:
        """Give PEs their cores. PEs of a program share the blocks learnt of it. Memories are written afterwards."""
        self._core.mesh_set_root(self._mesh, self._pe(root))
        for program in programs:
            image = self._core.mesh_add_image(
                self._mesh, program.stack_bottom, Extent(*program.code), Extent(*program.arena)
            )
            if self._strict:
                entries = (ctypes.c_uint32 * len(program.functions))(*program.functions)
                self._core.mesh_watch_calls(self._mesh, self._pe(program.pes[0]), image, entries, len(entries))
            for pe in program.pes:
                _check(self._core.mesh_power_up(self._mesh, self._pe(pe), image))
                for extent in program.polled:
                    self._core.mesh_add_polled(self._mesh, pe, Extent(*extent))

    def start_from_flash(self, root: int, flash: Flash, cause: int) -> None:
        """Start the root PE from flash. `cause`: hardware manual, section 7.1."""
        figures = self._keep(figure_array(flash.figures))
        memory = ctypes.addressof(self._keep(flash.memory))
        _check(self._core.mesh_add_flash(self._mesh, figures, len(figures), memory, cause))
        self.power_up(root, [Program((root,))])
        self._core.mesh_load_flash(self._mesh)
        self.reset([root])

    def cut_power(self, operation: int, chance: int) -> None:
        """Cuts the power during a flash operation; 1 is the next. `chance`: seed of the bits left behind."""
        self._core.mesh_cut_power(self._mesh, operation, chance)

    def reset(self, pes: Sequence[int]) -> None:
        """Start PEs from their vector tables."""
        for pe in pes:
            self._core.mesh_reset(self._mesh, self._pe(pe))

    def run(self, until: int | None, stop_at_output: bool, seconds: float) -> str:
        """Run, and return the reason of the stop, from `OUTCOMES`."""
        return OUTCOMES[self._core.mesh_run(self._mesh, _NEVER if until is None else until, stop_at_output, seconds)]

    def now(self) -> int:
        return self._core.mesh_now(self._mesh)

    def send(self, data: bytes) -> None:
        self._core.mesh_send(self._mesh, data, len(data))

    def take(self) -> bytes:
        """The bytes sent by the UART since the last call."""
        buffer = ctypes.create_string_buffer(_MOST_OUTPUT)
        count = self._core.mesh_take(self._mesh, buffer, _MOST_OUTPUT)
        return buffer.raw[:count]

    def read(self, place: int, address: int, size: int) -> bytes | None:
        buffer = ctypes.create_string_buffer(size)
        return buffer.raw[:size] if self._core.mesh_read(self._mesh, place, address, buffer, size) else None

    def write(self, place: int, address: int, data: bytes) -> bool:
        return bool(self._core.mesh_write(self._mesh, place, address, data, len(data)))

    def share(self, pes: Sequence[int]) -> None:
        """Copy the first PE's memory to the other PEs."""
        self._core.mesh_share(self._mesh, (ctypes.c_uint32 * len(pes))(*map(self._pe, pes)), len(pes))

    def counters(self, pe: int) -> dict[str, int]:
        counters = Counters()
        self._core.mesh_count(self._mesh, self._pe(pe), counters)
        return _fields(counters)

    def trace(self, on: bool) -> None:
        """Turns the trace on or off."""
        self._core.mesh_trace(self._mesh, on)

    def mark(self, pe: int, addresses: Sequence[int]) -> None:
        """Also record when a PE reaches one of these instructions (ascending)."""
        self._core.mesh_trace_mark(
            self._mesh, self._pe(pe), (ctypes.c_uint32 * len(addresses))(*addresses), len(addresses)
        )

    def alone(self, pe: int, span: Sequence[int], counts: Sequence[int], given: bytes) -> None:
        """Run the layers of a PE's next frame alone, once per case.

        `given`: table, places and input bytes. `counts`: bytes of the table and of the places.
        """
        table, rest = given[: counts[0]], given[counts[0] :]
        count, places = len(table) // _LAYER_BYTES, rest[: counts[1]]
        self._core.mesh_alone(self._mesh, self._pe(pe), Extent(*span), table, count, places, rest[counts[1] :])

    def alone_made(self, pe: int, size: int) -> bytes:
        """The output bytes so far, at most `size`."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        count = self._core.mesh_alone_take(self._mesh, self._pe(pe), buffer, size)
        return buffer.raw[:count]

    def take_trace(self) -> bytes:
        """The next part of the records since the last call: entries of `struct trace_record`."""
        buffer = ctypes.create_string_buffer(_MOST_RECORDS * _RECORD_BYTES)
        count = self._core.mesh_trace_take(self._mesh, buffer, _MOST_RECORDS)
        return buffer.raw[: count * _RECORD_BYTES]

    def fault(self) -> dict[str, Any]:
        fault = Fault()
        self._core.mesh_fault(self._mesh, fault)
        race = {**_fields(fault.race), "sides": [_fields(side) for side in fault.race.sides]}
        return {**_fields(fault), "registers": list(fault.registers), "what": fault.what.decode(), "race": race}

    def wait(self, pe: int) -> dict[str, int]:
        """The state of the PE, and the last flag or accelerator register read."""
        wait = Wait()
        self._core.mesh_wait(self._mesh, self._pe(pe), wait)
        return _fields(wait)

    def notes(self) -> list[dict[str, int]]:
        """The last messages, the latest first."""
        notes = (Note * _MOST_NOTES)()
        return [_fields(note) for note in notes[: self._core.mesh_notes(self._mesh, notes, _MOST_NOTES)]]

    def debug(self, pe: int) -> None:
        """Debug a PE, which stops before its first instruction. Before PEs are powered up."""
        self._core.mesh_debug(self._mesh, self._pe(pe))

    def breakpoint(self, address: int, on: bool) -> None:
        self._core.mesh_debug_break(self._mesh, address, on)

    def resume(self, step: bool) -> None:
        """Let the debugged PE continue at the next `run`, by one instruction or to the next stop."""
        self._core.mesh_debug_resume(self._mesh, step)

    def registers(self, pe: int) -> list[int]:
        values = (ctypes.c_uint32 * REGISTERS)()
        self._core.mesh_registers(self._mesh, self._pe(pe), values)
        return list(values)

    def set_register(self, pe: int, number: int, value: int) -> None:
        self._core.mesh_set_register(self._mesh, self._pe(pe), number, value)

    def close(self) -> None:
        self._core.mesh_free(self._mesh)

    def _pe(self, number: int) -> int:
        if not 0 <= number < self._pe_count:
            raise NoSuchPe(f"the emulated board has {self._pe_count} PEs and no PE {number}")
        return number

    def _set_core(self, core: Core) -> None:
        family = _FAMILIES.index(core.family)
        costs = (blocks.block_costs, riscv.block_costs)[family]
        decode = self._keep(Decode(partial(_decode, partial(costs, others=core.cycles))))
        for pe in map(self._pe, core.pes):
            self._core.mesh_set_core(self._mesh, pe, core.model, family, core.refill_cycles, decode)

    def _attach(self, accelerator: Accelerator) -> None:
        library = _library(Path(accelerator.library)) if accelerator.library else self._core
        try:
            model = ctypes.c_char.in_dll(library, f"{accelerator.name}_device")
        except ValueError:
            raise CannotStart(f"the emulator has no model of the accelerator {accelerator.name}") from None
        figures = self._keep(figure_array(accelerator.figures))
        address = ctypes.addressof(self._keep(model))
        _check(self._core.mesh_add_accelerator(self._mesh, accelerator.base, address, figures, len(figures)))
        for pe in accelerator.lacking:
            self._core.mesh_set_lacking(self._mesh, self._pe(pe))

    def _keep(self, value: Any) -> Any:
        """Keep a value alive, because C holds pointers to it."""
        self._kept.append(value)
        return value


def _pe_count(figures: Mapping[str, int]) -> int:
    return figures["chip_columns"] * figures["chip_rows"] * figures["columns"] * figures["rows"]


def _fields(structure: ctypes.Structure) -> dict[str, Any]:
    return {field[0]: getattr(structure, field[0]) for field in structure._fields_}


def _library(model: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(device_library(model)))
    except OSError as error:
        raise CannotStart(f"the model {model.name} cannot be loaded: {error}") from None


def _check(complaint: bytes | None) -> None:
    if complaint:
        raise CannotStart(complaint.decode())


def _decode(
    costs_of: Callable[[bytes, int], BlockCosts], code: Any, size: int, address: int, progress: Any, joint: Any
) -> None:
    costs = costs_of(ctypes.string_at(code, size), address)
    done = costs.progress
    ctypes.memmove(progress, (Progress * len(done))(*done), ctypes.sizeof(Progress) * len(done))
    joint[0] = _joint(costs)


def _joint(costs: BlockCosts) -> Joint:
    fpu_at = 0 if costs.fpu_at is None else costs.fpu_at + 1
    own = (costs.first_can_follow, costs.first_address, costs.last_loaded, costs.stack_bytes, costs.stack_at, fpu_at)
    needs = [Need(core_register(each.register), each.offset, each.added) for each in costs.needs]
    return Joint(*own, len(needs), costs.keeps_needs, (Need * MOST_NEEDS)(*needs))
