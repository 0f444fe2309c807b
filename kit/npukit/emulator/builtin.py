"""The built-in emulator: a mesh of cores, MAC arrays and a network-on-chip, deterministic to the cycle.

`npukit_emulator`, a separate process under the GPL, emulates the board. This module loads the images, and explains
faults and waits in words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from npukit.board.board import AcceleratorSlot, Board, Noc
from npukit.board.cores import CORES
from npukit.board.noc import DRAM
from npukit.board.registers import UartRegisters
from npukit.emulator.fault_plan import FaultPlan
from npukit.emulator.faults import DIFFERS, AddressNames, explain, in_words
from npukit.emulator.messages import last_messages
from npukit.emulator.patience import Patience
from npukit.emulator.process import WorkerProcess
from npukit.emulator.program import address_of, load_segments, stack_and_code, where
from npukit.emulator.rtl import NETWORK, Waves
from npukit.emulator.schedule import Schedule
from npukit.emulator.trace_records import TraceRecords
from npukit.emulator.waiting import Senders, Waiting, chain_of_waits
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR
from npukit.project.images.image import Image

_MEMORY_OF_A_PE, _TIMES_SRAM = 8 << 20, 32
"""Memory of the worker for each PE: bytes for its core, and bytes of recorded state for each byte of SRAM."""
_SECONDS_AT_ONCE = 0.5
"""Most seconds that the worker runs between two requests. It ends within this time after its parent."""


@dataclass(frozen=True)
class EmulatorCounters:
    """The counters of one PE since reset, in cycles of the board's clock unless the name says otherwise."""

    instructions: int
    cycles: int
    asleep: int
    npu_busy: int
    dma_bytes: int
    device_errors: int


@dataclass(frozen=True)
class Compared:
    """The parts of a board in RTL. `works`: of their accelerators. `messages`: arrived; None without the network in
    RTL. All equal to the C models' in bytes and cycles."""

    parts: tuple[str, ...]
    works: int
    messages: int | None

    def since(self, before: Compared) -> Compared:
        messages = None if self.messages is None else self.messages - (before.messages or 0)
        return Compared(self.parts, self.works - before.works, messages)


class Emulator:
    """A board that runs its images. As a link transport: the byte stream of the root PE's UART.

    Every PE starts from its image's vector table at cycle 0. It starts again, with the original image, when the
    firmware restarts the board. Time passes only in `read` and `run`. A forbidden action of a core (an undefined
    instruction, an access outside memory) ends the run with an `NpukitError`.

    `strict`: reads of memory never written are errors too, at some cost of speed. `races`: with `strict`, unordered
    accesses to memory are errors too. `plan`: faults to inject.

    `models`: models of accelerators outside npukit, by the accelerator's name: C files, or shared libraries compiled
    from them, with a `const struct device_model NAME_device` (`npukit_emulator/core/device.h`). `dram`: initial
    contents of the DRAM of these `chips`. `rtl`: libraries of accelerators and network in RTL (`rtl.py`), by
    name.
    """

    _debugged: int | None = None
    """The PE under a debugger."""
    _flash: Mapping[str, Any] | None = None
    """The board's boot flash."""

    def __init__(
        self,
        board: Board,
        images: Sequence[Image],
        models: Mapping[str, Path] | None = None,
        dram: bytes = b"",
        *,
        rtl: Mapping[str, Path] | None = None,
        chips: Sequence[int] = (0,),
        strict: bool = False,
        races: bool = True,
        plan: FaultPlan | None = None,
        senders: Senders | None = None,
        asked: int | None = None,
        workers: int | None = None,
        seed: int = 1,
        predicted_cycles: int = 0,
        layers: Sequence[str] = (),
        waves: Waves | None = None,
    ) -> None:
        """`senders`: the PEs whose messages count each flag, as far as known, to explain waits. `asked`: the
        explanation begins at this PE, by default the PE with the link.

        `workers`: cores of this machine to run PEs on, by default all; results do not depend on the number. `seed`: of
        the random bytes in every SRAM at power-on. `predicted_cycles`: of a frame; the time limit of `read` depends on
        it. `layers`: names of the network's layers, by tag of commands. `waves`: waveforms to write, with `rtl`.
        """
        if "emulator" not in board.runs_on:
            raise NpukitError(
                f"board {board.name} does not run on the built-in emulator",
                tries=[f"--on {other}" for other in board.runs_on],
            )
        self._board = board
        self._models, self._rtl = dict(models or {}), dict(rtl or {})
        self._strict, self._races, self._plan, self._senders = strict, races, plan, dict(senders or {})
        self._asked = board.root_pe if asked is None else asked
        self._seed, self._now, self._layers, self._waves = seed, 0, layers, waves
        self._patience, self._conversations = Patience(predicted_cycles), 0
        self._workers = workers or os.cpu_count() or 1
        self._images = tuple(images)
        self._dram = {DRAM + chip: dram for chip in chips if dram}
        self._outcome, self._output = "", b""
        self._addresses = dict[tuple[Path | None, str], int]()
        self._worker = WorkerProcess(_most_memory(board))
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Put bytes on the board's line. They arrive as time passes."""
        self._patience.asked(self._now)
        self._worker.ask("send", data)

    def read(self, timeout: float) -> bytes:
        """Run until the board has sent something. Returns nothing if every PE sleeps for good, after `timeout` seconds,
        or once the board has exceeded the cycles of an answer (`patience.py`)."""
        until, end = monotonic() + timeout, self._patience.end(self._now)
        while not self._output:
            seconds = min(_SECONDS_AT_ONCE, max(until - monotonic(), 0))
            self._outcome = self._run(end, stop_at_output=True, seconds=seconds)
            if self._outcome == "cycle":
                self._patience.gone()
            if self._outcome in ("idle", "cycle") or (self._outcome == "time" and monotonic() >= until):
                break
        output, self._output = self._output, b""
        return output

    def expect(self, frames: int) -> None:
        """Announce `frames` frames before the next answer."""
        self._patience.expect(frames)

    def conversation(self) -> int:
        """The number of a new conversation since power-on."""
        self._conversations += 1
        return self._conversations

    def run(self, cycles: int) -> None:
        """Let `cycles` cycles pass. Bytes from the UART are kept for the next `read`."""
        until = self.time() + cycles
        while self._run(until, stop_at_output=False, seconds=_SECONDS_AT_ONCE) == "time":
            pass

    def time(self) -> int:
        """The board's cycle count since reset."""
        return self._worker.ask("counters", pe=0)[0]["now"]

    def counters(self, pe: int) -> EmulatorCounters:
        self._check_pe(pe)
        reply, _ = self._worker.ask("counters", pe=pe)
        return EmulatorCounters(**{field.name: reply[field.name] for field in fields(EmulatorCounters)})

    def read_memory(self, pe: int, address: int, size: int) -> bytes:
        """SRAM of a PE. A `pe` of `0x8000_0000 + n` stands for the DRAM of chip n."""
        reply, data = self._worker.ask("read", place=pe, address=address, size=size)
        if not reply["there"]:
            raise self._no_memory(pe, address, size)
        return data

    def write_memory(self, pe: int, address: int, data: bytes) -> None:
        reply, _ = self._worker.ask("write", data, place=pe, address=address)
        if not reply["there"]:
            raise self._no_memory(pe, address, len(data))

    def disturb(self, schedule: Schedule | None) -> None:
        """Apply a schedule's delays from this cycle on. None: the hardware manual's timing."""
        self._worker.ask("disturb", seed=schedule.seed if schedule else 0)

    def trace(self, on: bool, marks: Mapping[int, Sequence[int]] = {}) -> None:
        """Start or stop the trace. `marks`: by PE the instructions whose execution is recorded, given once."""
        self._worker.ask("trace", on=on, marks=[(pe, sorted(addresses)) for pe, addresses in marks.items()])

    def compared(self) -> Compared:
        """The work of the RTL so far."""
        reply, _ = self._worker.ask("compared")
        return Compared(tuple(self._rtl), reply["count"], reply["messages"] if NETWORK in self._rtl else None)

    def traced(self) -> TraceRecords:
        """Trace records since the last call."""
        parts = list(iter(lambda: self._worker.ask("take_trace")[1], b""))
        return TraceRecords.from_bytes(b"".join(parts))

    def symbol(self, pe: int, name: str) -> int:
        """Address of a function or variable of the PE's program; 0 if there is no such name."""
        elf = self._elf(pe)
        if (elf, name) not in self._addresses:
            self._addresses[elf, name] = address_of(elf, name) if elf else 0
        return self._addresses[elf, name]

    def alone(self, pe: int, span: tuple[int, int], layers: np.ndarray, places: np.ndarray, data: bytes) -> None:
        """Have a PE repeat each layer of its next frame, once per case. `span`: begin and end of a layer in the code.

        `layers`, [layer, 3]: cases, places of inputs, places of outputs. `places`, [place, 2]: address, bytes. `data`:
        inputs of each case.
        """
        table, where_ = (each.astype("<u4").tobytes() for each in (layers, places))
        begin, end = (address & ~1 for address in span)
        self._worker.ask("alone", table + where_ + data, pe=pe, span=(begin, end), counts=(len(table), len(where_)))

    def alone_made(self, pe: int, size: int) -> bytes:
        """Outputs of the layers repeated by `alone`, case by case: `size` bytes, or fewer."""
        return self._worker.ask("alone_made", pe=pe, size=size)[1]

    def silence(self) -> tuple[str, ...]:
        """Chain of waiting PEs from the root on; registers of both ends; last messages."""
        chain, lines = [self._asked], list[str]()
        if self._board.noc and not self._board.noc.shared:
            chain, lines = chain_of_waits(self._asked, self._wait, self._board.noc, self._senders, self._place)
        ends = [pe for pe in dict.fromkeys((chain[0], chain[-1])) if self._elf(pe)]
        registers = [f"registers of PE {pe}: {in_words(self._names(pe), self._registers(pe))}" for pe in ends]
        why = [] if self._outcome == "idle" else [self._patience.in_words(self._now)]
        return (*why, *lines, *registers, *last_messages(self._worker.ask("notes")[0]["notes"], chain))

    @property
    def worker_process_id(self) -> int:
        return self._worker.process_id

    def close(self) -> None:
        self._worker.close()

    def _wait(self, pe: int) -> Waiting:
        return Waiting(**self._worker.ask("wait", pe=pe)[0])

    def _names(self, pe: int) -> tuple[str, ...]:
        """Names of a PE's first registers."""
        return CORES[self._board.cpu_of(pe)].architecture.registers

    def _registers(self, pe: int) -> list[int]:
        """Registers in the order of `_names`; on a Cortex-M then fpscr and s0-s31."""
        return self._worker.ask("registers", pe=pe)[0]["values"]

    def _place(self, pe: int, pc: int) -> str:
        elf = self._elf(pe)
        return where(elf, pc) if elf else ""

    def _start(self) -> None:
        mesh = self._board.mesh
        self._worker.ask(
            "create",
            figures={**_figures(self._board), "seed": self._seed},
            memories=list(_memories(self._board)),
            small_memories={
                pe: kind.memory_bytes for kind in self._board.kind if kind.memory_bytes for pe in kind.numbers
            },
            rules=self._board.emulator.rules if self._board.emulator else (),
            cores=list(_cores(self._board)),
            accelerators=[self._accelerator(slot) for slot in self._board.accelerator if slot.base is not None],
            dead_pes=mesh.dead_pes,
            dead_links=mesh.dead_links,
            root=self._board.root_pe,
            programs=[{"pes": image.pes, **stack_and_code(image.elf)} for image in self._images],
            strict=self._strict,
            races=self._races,
            workers=self._workers,
            faults=self._plan.for_worker(self._board) if self._plan else None,
            debug=self._debugged,
            flash=self._flash,
            network=str(self._rtl[NETWORK]) if NETWORK in self._rtl else None,
        )
        for image in self._images:
            self._load(image)
        for place, data in self._dram.items():
            self.write_memory(place, 0, data)
        self._choose_waves()
        pes = sorted(pe for image in self._images for pe in image.pes)
        self._worker.ask("reset", pes=[self._board.root_pe] if self._board.shares_memory else pes)

    def _choose_waves(self) -> None:
        waves = self._waves
        if waves:
            names = [slot.name for slot in self._board.accelerator if slot.base is not None]
            files = [str(waves.of(name).absolute()) for name in names]
            self._worker.ask("waves", pe=waves.pe, files=files, first=waves.first, last=waves.last)

    def _accelerator(self, slot: AcceleratorSlot) -> dict[str, Any]:
        library, rtl = self._models.get(slot.name), self._rtl.get(slot.name)
        return {
            "name": slot.name,
            "base": slot.base,
            "figures": slot.figures,
            "register_bytes": slot.register_bytes,
            "interrupt": slot.interrupt,
            "scratchpad": (slot.scratchpad.base, slot.scratchpad.bytes) if slot.scratchpad else (0, 0),
            "library": str(library.resolve()) if library else None,
            "rtl": str(rtl) if rtl else None,
            "lacking": sorted(self._board.lacking.get(slot.name, ())),
        }

    def _load(self, image: Image) -> None:
        for pe in image.pes:
            self._check_pe(pe)
        for address, data in load_segments(image.elf):
            self.write_memory(image.pes[0], address, data)
        self._worker.ask("share", pes=image.pes)
        for overlay in image.overlays:
            self.write_memory(overlay.pe, overlay.address, overlay.data)

    def _run(self, until: int | None, *, stop_at_output: bool, seconds: float) -> str:
        reply, output = self._worker.ask("run", until=until, stop_at_output=stop_at_output, seconds=seconds)
        self._output += output
        self._now = reply["now"]
        if output:
            self._patience.answered(self._now)
        if reply["outcome"] == "fault":
            raise self._fault(reply["fault"])
        return self._survived(reply["outcome"])

    def _survived(self, outcome: str) -> str:
        if outcome == "power cut":
            raise NpukitError(f"the board's power went at cycle {self.time():,}, as the plan of faults says")
        if outcome == "restart":
            self._now = 0
            self._patience.answered(self._now)
            self._start()
        return outcome

    def _fault(self, fault: dict[str, Any]) -> NpukitError:
        names = [slot.name for slot in self._board.accelerator if slot.base is not None]
        programs = AddressNames(self._elf, [*names, NETWORK])
        notes, layer = self._worker.ask("notes")[0]["notes"], self._layer(fault)
        return explain({**fault, "now": self._now}, self._names(fault["pe"]), programs, notes, layer)

    def _layer(self, fault: dict[str, Any]) -> str:
        """The layer of a command in which RTL and model differ, by the tag in the upper half of the second word."""
        if fault["kind"] != DIFFERS or not fault["address"] or not self._layers:
            return ""
        tag = int.from_bytes(self.read_memory(fault["pe"], fault["address"] + _TAG, 2), "little")
        return self._layers[tag] if tag < len(self._layers) else ""

    def _elf(self, pe: int) -> Path | None:
        return next((image.elf for image in self._images if pe in image.pes), None)

    def _check_pe(self, pe: int) -> None:
        if not 0 <= pe < self._board.pe_count or pe in self._board.mesh.dead_pes:
            raise NpukitError(f"board {self._board.name} has no working PE {pe}")

    def _no_memory(self, pe: int, address: int, size: int) -> NpukitError:
        return NpukitError(f"PE {pe} of board {self._board.name} has no {size} bytes of memory at {address:#010x}")


def _most_memory(board: Board) -> int:
    """Memory limit of the worker in bytes: a board with all of its DRAM in use, and the base of any run."""
    sram = sum(memory.size for memory in board.memory)
    dram = board.noc.dram_bytes if board.noc else 0
    chips = board.mesh.chips.columns * board.mesh.chips.rows
    return EMULATOR + board.pe_count * (_MEMORY_OF_A_PE + _TIMES_SRAM * sram) + chips * dram


_TAG = 6
"""Offset of the tag in a command: boards/pe-mesh.md, section 3.2."""
_MOST_RECEIVED = 256
_MESH_UART = UartRegisters(receive=0, send=0, readable=(4, 1), writable=(4, 2))
"""`boards/pe-mesh.md`, section 5."""
_NO_REGISTER = 0xFFFF_FFFF


def _memories(board: Board) -> Iterator[tuple[int, ...]]:
    """Address, size, waits and cache of each memory; first of the memory with the code."""
    for memory in sorted(board.memory, key=lambda memory: "code" not in memory.holds):
        waits = memory.waits
        if waits is None:
            yield memory.origin, memory.size, *(0,) * 6
        else:
            lines = (waits.line_bytes, waits.lines, waits.ways, waits.data_lines or 0)
            yield memory.origin, memory.size, waits.cycles, waits.following, *lines


def _cores(board: Board) -> Iterator[dict[str, Any]]:
    """Each core in the worker's format, with its PEs."""
    pes: dict[str, list[int]] = {}
    for pe in range(board.pe_count):
        pes.setdefault(board.cpu_of(pe), []).append(pe)
    for cpu, own in pes.items():
        core = CORES[cpu]
        facts = {"model": core.unicorn, "family": core.architecture.firmware, "refill_cycles": core.refill_cycles}
        yield {"pes": own, **facts, "cycles": dict(core.cycles)}


def _noc_figures(noc: Noc | None) -> dict[str, int]:
    """Figures of the network-on-chip; zeros without one. Shared memory has neither registers nor a DMA."""
    values = noc.model_dump() if noc else dict.fromkeys(Noc.model_fields, 0)
    del values["chip_link_bytes_per_cycle"]
    if values.pop("shared"):
        values["base"] = 0
    places = {"noc_base": values.pop("base"), "window_base": values.pop("window")}
    return {**values, **places, "chip_link_bytes_per_100_cycles": noc.chip_link_bytes_per_100_cycles if noc else 0}


def _stock_figures(board: Board) -> dict[str, int]:
    """Offsets of the registers of a UART and a timer, and bits of the UART."""
    stock = board.emulator
    uart = stock.uart if stock else _MESH_UART
    timer = stock.timer if stock else None
    offsets = {f"timer_{name}": getattr(timer, name, None) for name in ("count", "high", "capture")}
    offsets |= {"uart_receive_to": uart.receive_to, "uart_send_from": uart.send_from}
    return {
        "stock": stock is not None,
        "shared": board.shares_memory,
        "uart_receive": uart.receive,
        "uart_send": uart.send,
        "uart_readable_at": uart.input[0],
        "uart_readable": uart.input[1],
        "uart_says_empty": uart.empty is not None,
        "uart_writable_at": uart.room[0],
        "uart_writable": uart.room[1],
        "uart_says_full": uart.full is not None,
        "uart_bytes": uart.bytes,
        "timer_down": timer is not None and timer.down,
        **{name: _NO_REGISTER if at is None else at for name, at in offsets.items()},
    }


def _figures(board: Board) -> dict[str, int]:
    """The board's figures under the names of the worker's core."""
    flash = board.flash
    return {
        **_noc_figures(board.noc),
        "clock_hz": board.core.clock_hz,
        "start": board.boot_bytes,
        **_stock_figures(board),
        "receive_bytes": min(board.uart.receive_bytes, _MOST_RECEIVED),
        "baud": board.uart.baud,
        "uart_base": board.uart.base,
        "events_base": board.events.base if board.events else 0,
        "boot_base": flash.base if flash else 0,
        "boot_window": flash.window if flash else 0,
        "boot_bytes": flash.loader_bytes if flash else 0,
        "timer_base": board.timer.base,
        "timer_hz": board.timer.hz or board.core.clock_hz,
        "chip_columns": board.mesh.chips.columns,
        "chip_rows": board.mesh.chips.rows,
        "hexagonal_torus": board.mesh.chip_links == "hexagonal torus",
        "columns": board.mesh.pes.columns,
        "rows": board.mesh.pes.rows,
    }
