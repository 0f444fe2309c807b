# SPDX-License-Identifier: GPL-2.0-only
"""The emulated board: a mesh of the C core, set up from the board file and the programs."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Mapping, Sequence
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
_NO_INTERRUPT = 255
_MOST_OUTPUT = 1 << 16
_MOST_RECORDS = 1 << 16
_RECORD_BYTES = 40
_LAYER_BYTES = 12
_MOST_NOTES = 1024
_ANY = (1 << 32) - 1
_UNSAID = {
    **dict.fromkeys(("at", "packet", "bit", "hop", "part"), _NEVER),
    **dict.fromkeys(("source", "destination", "tag"), _ANY),
}


class CannotStart(Exception):
    """The board could not be set up. The text is the reason."""


class NoSuchPe(Exception):
    """A PE that the board does not have. The core's functions do not check PE numbers."""


_FAMILIES = ("cortex_m", "riscv")
"""Instruction sets, by their number in `mesh_set_core`."""


class Flash:
    """The flash of a board, kept in a file of the same length."""

    def __init__(self, file: str, figures: Mapping[str, int]) -> None:
        self.figures = figures
        with open(file, "r+b") as stream:
            self._bytes = mmap.mmap(stream.fileno(), figures["bytes"])
        self.memory = (ctypes.c_ubyte * figures["bytes"]).from_buffer(self._bytes)


class EmulatedBoard:
    """A board in its present state: PEs, their memories and devices. Public methods answer requests."""

    def __init__(
        self,
        figures: Mapping[str, int],
        memories: Sequence[Sequence[int]],
        small_memories: Mapping[str, int],
        rules: Sequence[tuple[str, int, int]],
        cores: Sequence[dict[str, Any]],
        accelerators: Sequence[dict[str, Any]],
        dead_pes: Sequence[int],
        dead_links: Sequence[Sequence[int]],
        root: int,
        programs: Sequence[dict[str, Any]],
        strict: bool,
        races: bool,
        workers: int,
        faults: dict[str, Any] | None,
        debug: int | None,
        flash: Flash | None,
        cause: int,
        network: str | None = None,
    ) -> None:
        """`memories`: base, size and waits of each, as in `Memory`, the memory with the code first. `small_memories`:
        PEs with a smaller first memory. `rules`: a name of `RULES`, a register's address and a value. `cores`,
        `accelerators`, `programs`: arguments of `_set_core`, `_attach`, `_load`. `workers`: host cores that run PEs;
        results do not depend on the number. `debug`: a PE that stops before its first instruction. `faults`: seed and
        lines of the plan of faults. `cause`: of a start from flash. `network`: a library with the network in RTL.

        `strict` turns into faults: reads of unwritten memory; functions that change registers to be preserved; with
        `races`, unordered accesses of memory.
        """
        self._core = load_core(core_library())
        self._kept: list[Any] = []
        self._rtl: list[str | None] = []
        self._pe_count = figures["chip_columns"] * figures["chip_rows"] * figures["columns"] * figures["rows"]
        self._mesh = self._new(figures, memories)
        for core in cores:
            self._set_core(**core)
        for accelerator in accelerators:
            self._attach(**accelerator)
        self._set_network(network, flash)
        for rule in rules:
            self._add_rule(*rule)
        for pe in dead_pes:
            self._core.mesh_set_pe_dead(self._mesh, self._pe(pe))
        for pe, other in dead_links:
            self._core.mesh_set_link_dead(self._mesh, self._pe(pe), self._pe(other))
        for number, size in small_memories.items():
            self._core.mesh_set_memory(self._mesh, self._pe(int(number)), size)
        self._core.mesh_set_workers(self._mesh, workers)
        if strict:
            self._core.mesh_be_strict(self._mesh, races)
        if debug is not None:
            self._core.mesh_debug(self._mesh, self._pe(debug))
        if faults:
            self._inject(**faults)
        self._power_up(root, programs, strict, flash, cause)

    def _new(self, figures: Mapping[str, int], memories: Sequence[Sequence[int]]) -> int:
        if len(memories) > _MOST_MEMORIES:
            raise CannotStart(f"the board has {len(memories)} memories, more than {_MOST_MEMORIES}")
        total = sum(size for _, size, *_ in memories)
        sizes = {"memory_count": len(memories), "code_bytes": memories[0][1], "sram_bytes": total}
        array = self._figures = self._keep(figure_array({**figures, **sizes}))
        places = (Memory * len(memories))(*(Memory(*memory) for memory in memories))
        unicorn = ctypes.cast(self._keep(unicorn_functions()), ctypes.c_void_p)
        mesh = self._core.mesh_new(array, len(array), places, unicorn)
        if not mesh:
            missing = self._core.mesh_missing_figure()
            raise CannotStart(f"the board has no figure {missing.decode()}" if missing else "out of memory")
        return mesh

    def _set_core(
        self, pes: Sequence[int], model: int, family: str, refill_cycles: int, cycles: Mapping[str, int]
    ) -> None:
        """Set the core of some PEs. `model`: Unicorn's CPU number. `family`: instruction set. `refill_cycles`: extra
        cycles of a taken branch. `cycles`: cycles of instructions, by name, that differ from the architecture's usual
        core."""
        number = _FAMILIES.index(family)
        costs = (blocks.block_costs, riscv.block_costs)[number]
        decode = self._keep(Decode(partial(_decode, partial(costs, others=cycles))))
        for pe in map(self._pe, pes):
            self._core.mesh_set_core(self._mesh, pe, model, number, refill_cycles, decode)

    def _attach(
        self,
        name: str,
        base: int,
        figures: Mapping[str, int],
        library: str | None,
        lacking: Sequence[int],
        register_bytes: int,
        interrupt: int | None,
        scratchpad: tuple[int, int],
        rtl: str | None = None,
    ) -> None:
        """Add an accelerator to all PEs except `lacking`. `interrupt`: number at the NVIC. `scratchpad`: address and
        size of the device's memory. `library`: a third party's model; npukit's own models are in
        the core. `rtl`: a library with the device in RTL. The device then does the work, and must do as the model."""
        model = self._model(name, library)
        array = self._keep(figure_array(figures))
        device = self._model(name, rtl) if rtl else model
        self._rtl.append(rtl)
        _check(self._core.mesh_add_accelerator(self._mesh, base, device, array, len(array)))
        number = _NO_INTERRUPT if interrupt is None else interrupt
        self._core.mesh_set_places(self._mesh, register_bytes, number, *scratchpad)
        if rtl:
            self._core.mesh_set_beside(self._mesh, model)
        for pe in lacking:
            self._core.mesh_set_lacking(self._mesh, self._pe(pe))

    def _set_network(self, library: str | None, flash: Flash | None) -> None:
        if library is None:
            return
        if flash:
            raise CannotStart("a network in RTL does not run on a board that starts from flash")
        model = self._model("network", library)
        _check(self._core.mesh_set_network(self._mesh, model, self._figures, len(self._figures)))

    def _model(self, name: str, library: str | None) -> int:
        """The address of the accelerator's `struct device_model` in a library, by default in the core."""
        models = _library(Path(library)) if library else self._core
        try:
            model = ctypes.c_char.in_dll(models, f"{name}_device")
        except ValueError:
            raise CannotStart(f"the emulator has no model of the accelerator {name}") from None
        return ctypes.addressof(self._keep(model))

    def _add_rule(self, kind: str, address: int, value: int) -> None:
        if not self._core.mesh_add_rule(self._mesh, RULES.index(kind), address, value):
            raise CannotStart("the board's file says more of registers than the emulator can keep")

    def _inject(self, seed: int, injections: Sequence[Mapping[str, int]]) -> None:
        lines = [Injection(**{**_UNSAID, **injection}) for injection in injections]
        self._core.mesh_inject(self._mesh, (Injection * len(lines))(*lines), len(lines), seed)

    def _power_up(
        self, root: int, programs: Sequence[dict[str, Any]], strict: bool, flash: Flash | None, cause: int
    ) -> None:
        """Give PEs their cores; memories are written afterwards. With flash, start the root PE from it."""
        if flash:
            figures = self._keep(figure_array(flash.figures))
            memory = ctypes.addressof(self._keep(flash.memory))
            _check(self._core.mesh_add_flash(self._mesh, figures, len(figures), memory, cause))
        self._core.mesh_set_root(self._mesh, self._pe(root))
        for program in programs:
            self._load(strict, **program)
        if flash:
            self._load(strict, [root])
            self._core.mesh_load_flash(self._mesh)
            self.reset([root])

    def _load(
        self,
        strict: bool,
        pes: Sequence[int],
        stack_bottom: int = 0,
        code: Sequence[int] = (0, 0),
        arena: Sequence[int] = (0, 0),
        functions: Sequence[int] = (),
        polled: Sequence[Sequence[int]] = (),
    ) -> None:
        """Power up the PEs of a program, which share the blocks learnt of it; 0 is unknown.

        `stack_bottom`: the end of the stack. `code`, `arena`: ranges of code and activations. `functions`: addresses of
        functions. `polled`: ranges of words accessed like registers.
        """
        image = self._core.mesh_add_image(self._mesh, stack_bottom, Extent(*code), Extent(*arena))
        if strict:
            entries = (ctypes.c_uint32 * len(functions))(*functions)
            self._core.mesh_watch_calls(self._mesh, self._pe(pes[0]), image, entries, len(entries))
        for pe in pes:
            _check(self._core.mesh_power_up(self._mesh, self._pe(pe), image))
            for extent in polled:
                self._core.mesh_add_polled(self._mesh, pe, Extent(*extent))

    def waves(self, pe: int, files: Sequence[str], first: int, last: int) -> None:
        """Write the waveforms of a PE's accelerators in RTL, from cycle `first` to `last`. `files`: of each accelerator
        of the board. The accelerators' libraries must be made for waveforms."""
        for number, (file, rtl) in enumerate(zip(files, self._rtl, strict=True)):
            state = self._core.mesh_device(self._mesh, self._pe(pe), number)
            if rtl and state:
                write = ctypes.CDLL(rtl).device_waves
                write.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
                write(state, file.encode(), first, last)

    def disturb(self, seed: int) -> None:
        """Disturbs the timing from this cycle on, by a seed; 0: timing of the hardware manual."""
        self._core.mesh_disturb(self._mesh, seed)

    def cut_power(self, operation: int, chance: int) -> None:
        """Cuts the power during a flash operation; 1 is the next. `chance`: seed of the bits left behind."""
        self._core.mesh_cut_power(self._mesh, operation, chance)

    def reset(self, pes: Sequence[int]) -> None:
        """Start PEs from their vector tables."""
        for pe in pes:
            self._core.mesh_reset(self._mesh, self._pe(pe))

    def run(self, until: int | None, stop_at_output: bool, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Run until a cycle, output (with `stop_at_output`), or `seconds` of real time. The bytes are the output."""
        end = _NEVER if until is None else until
        outcome = OUTCOMES[self._core.mesh_run(self._mesh, end, stop_at_output, seconds)]
        buffer = ctypes.create_string_buffer(_MOST_OUTPUT)
        count = self._core.mesh_take(self._mesh, buffer, _MOST_OUTPUT)
        reply = {"outcome": outcome, "now": self._core.mesh_now(self._mesh)}
        return reply | ({"fault": self._fault()} if outcome == "fault" else {}), buffer.raw[:count]

    def send(self, data: bytes) -> None:
        """Send bytes to the board's UART."""
        self._core.mesh_send(self._mesh, data, len(data))

    def read(self, place: int, address: int, size: int) -> tuple[dict[str, Any], bytes]:
        buffer = ctypes.create_string_buffer(size)
        there = bool(self._core.mesh_read(self._mesh, place, address, buffer, size))
        return {"there": there}, buffer.raw[:size] if there else b""

    def write(self, place: int, address: int, data: bytes) -> dict[str, bool]:
        return {"there": bool(self._core.mesh_write(self._mesh, place, address, data, len(data)))}

    def share(self, pes: Sequence[int]) -> None:
        """Copy the first PE's memory to the other PEs."""
        self._core.mesh_share(self._mesh, (ctypes.c_uint32 * len(pes))(*map(self._pe, pes)), len(pes))

    def counters(self, pe: int) -> dict[str, int]:
        counters = Counters()
        self._core.mesh_count(self._mesh, self._pe(pe), counters)
        return {**_fields(counters), "now": self._core.mesh_now(self._mesh)}

    def trace(self, on: bool, marks: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Turn the trace on or off. `marks`: by PE, ascending, instructions whose executions are recorded."""
        for pe, addresses in marks:
            array = (ctypes.c_uint32 * len(addresses))(*addresses)
            self._core.mesh_trace_mark(self._mesh, self._pe(pe), array, len(array))
        self._core.mesh_trace(self._mesh, on)

    def alone(self, pe: int, span: Sequence[int], counts: Sequence[int], data: bytes) -> None:
        """Run the layers of a PE's next frame alone, once per case. `data`: table, places and input bytes. `counts`:
        bytes of the table and of the places."""
        table, rest = data[: counts[0]], data[counts[0] :]
        count, places = len(table) // _LAYER_BYTES, rest[: counts[1]]
        self._core.mesh_alone(self._mesh, self._pe(pe), Extent(*span), table, count, places, rest[counts[1] :])

    def alone_made(self, pe: int, size: int) -> bytes:
        """The output bytes so far, at most `size`."""
        buffer = ctypes.create_string_buffer(max(size, 1))
        count = self._core.mesh_alone_take(self._mesh, self._pe(pe), buffer, size)
        return buffer.raw[:count]

    def compared(self) -> dict[str, int]:
        """Works of devices in RTL so far, each equal to the model's."""
        return {"count": self._core.mesh_compared(self._mesh), "messages": self._core.mesh_messages(self._mesh)}

    def take_trace(self) -> bytes:
        """The next part of the records since the last call: entries of `struct trace_record`."""
        buffer = ctypes.create_string_buffer(_MOST_RECORDS * _RECORD_BYTES)
        count = self._core.mesh_trace_take(self._mesh, buffer, _MOST_RECORDS)
        return buffer.raw[: count * _RECORD_BYTES]

    def wait(self, pe: int) -> dict[str, int]:
        """The state of the PE, and the last flag or accelerator register read."""
        wait = Wait()
        self._core.mesh_wait(self._mesh, self._pe(pe), wait)
        return _fields(wait)

    def notes(self) -> dict[str, list[dict[str, int]]]:
        """The last messages, the latest first."""
        notes = (Note * _MOST_NOTES)()
        return {"notes": [_fields(note) for note in notes[: self._core.mesh_notes(self._mesh, notes, _MOST_NOTES)]]}

    def breakpoint(self, address: int, on: bool) -> None:
        self._core.mesh_debug_break(self._mesh, address, on)

    def resume(self, step: bool) -> None:
        """Let the debugged PE continue at the next `run`, by one instruction or to the next stop."""
        self._core.mesh_debug_resume(self._mesh, step)

    def registers(self, pe: int) -> dict[str, list[int]]:
        values = (ctypes.c_uint32 * REGISTERS)()
        self._core.mesh_registers(self._mesh, self._pe(pe), values)
        return {"values": list(values)}

    def set_register(self, pe: int, number: int, value: int) -> None:
        self._core.mesh_set_register(self._mesh, self._pe(pe), number, value)

    def close(self) -> None:
        self._core.mesh_free(self._mesh)

    def _pe(self, number: int) -> int:
        if not 0 <= number < self._pe_count:
            raise NoSuchPe(f"the emulated board has {self._pe_count} PEs and no PE {number}")
        return number

    def _fault(self) -> dict[str, Any]:
        fault = Fault()
        self._core.mesh_fault(self._mesh, fault)
        race = {**_fields(fault.race), "sides": [_fields(side) for side in fault.race.sides]}
        return {**_fields(fault), "registers": list(fault.registers), "what": fault.what.decode(), "race": race}

    def _keep(self, value: Any) -> Any:
        """Keep a value alive, because C holds pointers to it."""
        self._kept.append(value)
        return value


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
    fpu_at = 0 if costs.fpu_at is None else costs.fpu_at + 1
    own = (costs.first_can_follow, costs.first_address, costs.last_loaded, costs.stack_bytes, costs.stack_at, fpu_at)
    needs = [Need(core_register(each.register), each.offset, each.added) for each in costs.needs]
    joint[0] = Joint(*own, len(needs), costs.keeps_needs, (Need * MOST_NEEDS)(*needs))
