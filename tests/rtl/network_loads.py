"""Random chains of DMA descriptors on all PEs of a mesh, in the emulator and in RTL (`rtl/testbench/mesh_main.cpp`)."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from emulator.programs import RESULTS, program, run_to_sleep, running
from npukit.emulator.fault_plan import FaultPlan
from npukit.emulator.trace_records import RecordKind
from oracles.dma_model import DESCRIPTOR_BYTES, DRAM, MULTICAST, NO_FLAG, Descriptor

COLUMNS, ROWS = 4, 4
PES = COLUMNS * ROWS
TABLE, DESCRIPTORS, LISTS, SOURCES, ARRIVALS = 0x1_1000, 0x1_2000, 0x1_5000, 0x1_6000, 0x1_8000
SOURCE_BYTES, ARRIVAL_BYTES, DRAM_BYTES = ARRIVALS - SOURCES, 0x6000, 0x2_0000
FIRST_CYCLE, LAST_CYCLE = 2000, 60_000
LOST = 0xFFFF_FFFF
"""In place of a bit."""
FLAG = 1
"""Counted by all messages."""

# Each PE rings its chains at the cycles of its table. The store is 3 cycles behind the load of the time.
PROGRAM = """
#include "board.h"
int main(void)
{
    for (const uint32_t *entry = (const uint32_t *)WORK; entry[0] != 0; entry += 3) {
        uint32_t before;
        while (TIMER_CYCLES < entry[0]) {
        }
        __asm volatile("dsb\\n\\tldr %0, [%1]\\n\\tnop\\n\\tstr %2, [%3]"
            : "=&r"(before) : "r"(0xE1000000U), "r"(entry[1]), "r"(0xE2000000U) : "memory");
        ((volatile uint32_t *)entry)[2] = before + 3;
    }
    while (TIMER_CYCLES < END) {
    }
    RESULTS[0] = DMA_ERROR;
    RESULTS[1] = DMA_COMPLETED;
    return 0;
}
""".replace("END", str(LAST_CYCLE))


@dataclass
class Pe:
    """Memory and chains of a PE. `rings`: the cycle from which a chain is rung, and its first descriptor."""

    rings: list[tuple[int, int]] = field(default_factory=list)
    descriptors: list[Descriptor] = field(default_factory=list)
    lists: bytes = b""
    arrivals: int = ARRIVALS
    """Address of the next message that arrives: messages lie apart."""

    def room(self, size: int) -> int | None:
        at = self.arrivals
        self.arrivals += size if at + size <= ARRIVALS + ARRIVAL_BYTES else 0
        return at if self.arrivals > at or size == 0 else None


@dataclass(frozen=True)
class Outcome:
    """Arrivals as (cycle, PE), errors and counts of descriptors by PE, all bytes that may have changed."""

    arrivals: list[tuple[int, int]]
    errors: list[int]
    completed: list[int]
    memory: bytes


@dataclass(frozen=True)
class LinkFault:
    """In front of a port of a PE: a flipped bit (0 to 143) of a flit of the first packet from a cycle on, or `LOST`."""

    cycle: int
    pe: int
    port: int
    flit: int
    bit: int


class Load:
    """The chains of all PEs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.pes = [Pe() for _ in range(PES)]
        self.sources = [self.random.integers(0, 256, SOURCE_BYTES, np.uint8).tobytes() for _ in range(PES)]
        self.dram = self.random.integers(0, 256, DRAM_BYTES // 2, np.uint8).tobytes()
        self._dram_end = DRAM_BYTES // 2
        self._busy = self.random.random() * 0.8 + 0.1
        for number in range(PES):
            self._fill(number)

    def _below(self, end: int) -> int:
        return int(self.random.integers(0, end))

    def _fill(self, number: int) -> None:
        pe, cycle = self.pes[number], FIRST_CYCLE
        for _ in range(self._below(12)):
            first = len(pe.descriptors)
            for _ in range(1 + self._below(5)):
                made = self._descriptor(number)
                if made:
                    pe.descriptors.append(made)
            if len(pe.descriptors) > first:
                self._link(pe, first)
                cycle += 40 + self._below(int(2000 * (1 - self._busy)))
                pe.rings.append((cycle, DESCRIPTORS + DESCRIPTOR_BYTES * first))

    @staticmethod
    def _link(pe: Pe, first: int) -> None:
        for place in range(first, len(pe.descriptors) - 1):
            following = DESCRIPTORS + DESCRIPTOR_BYTES * (place + 1)
            pe.descriptors[place] = replace(pe.descriptors[place], next=following)

    def _descriptor(self, number: int) -> Descriptor | None:
        if self._below(40) == 0:
            return self._wrong(number)
        match self._below(10):
            case 0:
                return self._to_pes(number, number, [self._below(PES)], rows=0, row_bytes=0)
            case 1 | 2 | 3:
                return self._to_pes(number, number, self._others())
            case 4:
                return self._to_dram(number)
            case 5 | 6:
                return self._to_pes(number, DRAM, self._others() if self._below(2) else [number])
            case 7:
                return self._to_pes(number, self._below(PES), [number])
            case _:
                return self._to_pes(number, number, [self._below(PES)])

    def _wrong(self, number: int) -> Descriptor:
        """A descriptor that ends all chains with an error."""
        wrong = (
            {"kind": 2},
            {"source_pe": PES},
            {"destination_pe": PES + 1},
            {"source": 0x1_FFF8},
            {"destination": 0x1_FFF1},
            {"source_flag": 64},
            {"source_pe": (number + 1) % PES, "source_flag": 3},
        )
        good = Descriptor(source_pe=number, source=SOURCES, destination_pe=0, row_bytes=16, rows=1)
        return replace(good, **wrong[self._below(len(wrong))])

    def _others(self) -> list[int]:
        return [int(pe) for pe in self.random.permutation(PES)[: 1 + self._below(PES)]]

    def _shape(self) -> dict[str, int]:
        row_bytes = int(self.random.choice([1 + self._below(40), 16 * (1 + self._below(20)), 1 + self._below(1200)]))
        rows = 1 + self._below(max(1500 // (row_bytes + 8), 1))
        return {"row_bytes": row_bytes, "rows": rows}

    def _source(self, bytes_: int, shape: dict[str, int]) -> dict[str, int]:
        stride = shape["row_bytes"] + self._below(9)
        extent = stride * max(shape["rows"] - 1, 0) + shape["row_bytes"] + 1
        return {"source": self._below(bytes_ - extent), "source_stride": stride}

    def _to_pes(self, number: int, source: int, targets: list[int], **given: int) -> Descriptor | None:
        shape = given or self._shape()
        base = 0 if source == DRAM else SOURCES
        stride = shape["row_bytes"] + self._below(5)
        places = [self.pes[pe].room(stride * shape["rows"]) for pe in targets]
        if None in places:
            return None
        fields = {**shape, **self._source(DRAM_BYTES // 2 if source == DRAM else SOURCE_BYTES, shape)}
        fields["source"] += base
        flags = {"source_flag": NO_FLAG if source != number else 2, "destination_flag": FLAG}
        made = Descriptor(source_pe=source, destination_stride=stride, **fields, **flags)
        if len(targets) == 1 and self._below(4):
            return replace(made, destination_pe=targets[0], destination=places[0] or 0)
        pe = self.pes[number]
        at = LISTS + len(pe.lists)
        pe.lists += b"".join(struct.pack("<II", to, place or 0) for to, place in zip(targets, places, strict=True))
        return replace(made, kind=made.kind | MULTICAST, destination_pe=at, destination=len(targets))

    def _to_dram(self, number: int) -> Descriptor | None:
        shape = self._shape()
        stride = shape["row_bytes"] + self._below(5)
        at, self._dram_end = self._dram_end, self._dram_end + stride * shape["rows"]
        if self._dram_end > DRAM_BYTES:
            return None
        fields = {**shape, **self._source(SOURCE_BYTES, shape)}
        fields["source"] += SOURCES
        return Descriptor(
            source_pe=number, destination_pe=DRAM, destination=at, destination_stride=stride, source_flag=2, **fields
        )

    @property
    def count(self) -> int:
        return sum(len(pe.descriptors) for pe in self.pes)

    def memories(self, number: int) -> Iterator[tuple[int, bytes]]:
        pe = self.pes[number]
        yield DESCRIPTORS, b"".join(descriptor.pack() for descriptor in pe.descriptors)
        yield LISTS, pe.lists
        yield SOURCES, self.sources[number]


@cache
def _program() -> Path:
    return program(PROGRAM)


def emulated(load: Load, board: str = "pe-mesh", plan: FaultPlan | None = None) -> tuple[Outcome, list[list[int]]]:
    """The outcome on the emulator, and the cycles at which each PE's chains were rung."""
    with running((_program(), tuple(range(PES))), board=board, plan=plan) as emulator:
        for number, pe in enumerate(load.pes):
            table = b"".join(struct.pack("<III", cycle, address, 0) for cycle, address in pe.rings)
            for address, data in (*load.memories(number), (TABLE, table + bytes(12)), (ARRIVALS, bytes(ARRIVAL_BYTES))):
                emulator.write_memory(number, address, data)
        emulator.write_memory(DRAM, 0, load.dram)
        emulator.trace(True)
        run_to_sleep(emulator)
        moved = emulator.traced().of(RecordKind.TRANSFER)
        arrivals = sorted((int(each["end"]), int(each["b"])) for each in moved if each["b"] < DRAM)
        finals = [struct.unpack("<2I", emulator.read_memory(pe, RESULTS, 8)) for pe in range(PES)]
        tables = [emulator.read_memory(pe, TABLE, 12 * len(load.pes[pe].rings)) for pe in range(PES)]
        memory = b"".join(emulator.read_memory(pe, ARRIVALS, ARRIVAL_BYTES) for pe in range(PES))
        memory += emulator.read_memory(DRAM, 0, DRAM_BYTES)
    rung = [[at for _, _, at in struct.iter_unpack("<III", table)] for table in tables]
    errors, completed = ([final[which] for final in finals] for which in (0, 1))
    return Outcome(arrivals, errors, completed, memory), rung


class Mesh:
    """The RTL's program, which runs script after script."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.violations = 0
        """Assertions of the RTL that failed."""

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, load: Load, rung: list[list[int]], struck: Sequence[LinkFault] = ()) -> Outcome:
        script = [*_initial(load), *_rings(load, rung), *(_record(5, *astuple(fault)) for fault in struck)]
        script += [_record(6, pe, ARRIVALS, ARRIVAL_BYTES) for pe in range(PES)]
        script += [_record(7, 0, DRAM_BYTES), _record(0, 4 * LAST_CYCLE, 300)]
        assert self._process.stdin
        self._process.stdin.write(b"".join(script))
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Outcome:
        _, _, _, limited, violations = self._words(5)
        assert not limited, "the RTL does not come to an end"
        self.violations += violations
        counts = self._tuples(3)
        for each in (2, 2, 3, 2, 1):
            self._tuples(each)
        finals = [self._words(6) for _ in range(PES)]
        memory = b"".join(self._read(ARRIVAL_BYTES) for _ in range(PES)) + self._read(DRAM_BYTES)
        arrivals = sorted((cycle, pe) for cycle, pe, flag in counts if flag == FLAG)
        return Outcome(arrivals, [final[0] for final in finals], [final[1] for final in finals], memory)

    def _read(self, size: int) -> bytes:
        assert self._process.stdout
        return self._process.stdout.read(size)

    def _words(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self._read(4 * count))

    def _tuples(self, each: int) -> list[tuple[int, ...]]:
        (count,) = self._words(1)
        return list(struct.iter_unpack(f"<{each}I", self._read(4 * count * each)))


def _record(*words: int, data: bytes = b"") -> bytes:
    return struct.pack(f"<{len(words)}I", *words) + data + bytes(-len(data) % 4)


def _initial(load: Load) -> Iterator[bytes]:
    for number in range(PES):
        for address, data in load.memories(number):
            yield _record(1, number, address, len(data), data=data)
    yield _record(2, 0, len(load.dram), data=load.dram)


def _rings(load: Load, rung: list[list[int]]) -> Iterator[bytes]:
    stores = [
        (cycle, number, address)
        for number, (pe, cycles) in enumerate(zip(load.pes, rung, strict=True))
        for cycle, (_, address) in zip(cycles, pe.rings, strict=True)
    ]
    for cycle, number, address in sorted(stores):
        yield _record(3, cycle, number, 0, 0, address)


def differences(mesh: Mesh, load: Load, board: str = "pe-mesh") -> list[str]:
    """The differences between emulator and RTL, the first arrivals that differ among them."""
    wanted, rung = emulated(load, board)
    return compared(wanted, mesh.run(load, rung))


def compared(wanted: Outcome, seen: Outcome) -> list[str]:
    found = []
    pairs = zip(wanted.arrivals, seen.arrivals, strict=False)
    first = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if first or len(wanted.arrivals) != len(seen.arrivals):
        found.append(f"arrivals: {len(wanted.arrivals)} and {len(seen.arrivals)}, first (emulator, RTL) {first}")
    found += [f"errors {wanted.errors} {seen.errors}"] if wanted.errors != seen.errors else []
    found += [f"descriptors {wanted.completed} {seen.completed}"] if wanted.completed != seen.completed else []
    return found + (["bytes"] if wanted.memory != seen.memory else [])
