"""Cycles in which the core waits for code and constants in memories with wait states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.network import AT_ONCE, ConstantCycles, Fetches
from npukit.board.board import Board, Waits

READS_PER_FRAME = (0, 32, 128)
"""Assumed reads per frame of a byte of constants in memory without waits, for the choice of kernels: dense layers read
a byte once, convolutions many times. The best of the resulting plans is kept."""


@dataclass(frozen=True)
class CoreWaits:
    """The waits of the memories with code and constants. `near`: ops whose constants lie in memory without waits."""

    code: Waits | None = None
    constants: Waits | None = None
    near: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.code is not None or self.constants is not None

    def with_near(self, gains: Mapping[str, tuple[int, int]], room: int) -> CoreWaits:
        """The waits with constants in `room` bytes of memory without waits, chosen by cycles saved per byte. `gains`:
        per op, the cycles of waiting for its constants in their usual memory, and the constants' size in bytes."""
        near: set[str] = set()
        for op in sorted(gains, key=lambda op: (-gains[op][0] / gains[op][1], op)):
            if gains[op][1] <= room:
                near.add(op)
                room -= gains[op][1]
        return replace(self, near=frozenset(near))

    @property
    def fetches(self) -> Fetches:
        """The waits for code, for the choice of kernels."""
        return Fetches(self.code.following / self.code.line_bytes, self.code.code_bytes) if self.code else AT_ONCE

    def of_code(self, kernels: Iterable[Kernel]) -> int:
        """Cycles to fetch the code of called kernels into an empty cache."""
        if self.code is None:
            return 0
        fetched = sum(kernel.body.fetched_bytes(self.code.code_bytes) for kernel in kernels)
        return self.code.following * fetched // self.code.line_bytes

    def of_constants(self, op: str, size: int, sweeps: int) -> int:
        """Cycles to read constants `sweeps` times from first to last; only once if the cache holds all."""
        if self.constants is None or op in self.near:
            return 0
        times = 1 if size <= self.constants.data_bytes else sweeps
        return self.constants.cycles * times * size // self.constants.line_bytes

    @property
    def prices(self) -> Sequence[float]:
        """Prices in cycles of a byte of constants without waits, from 0 to infinite: a choice of kernels for each."""
        if self.constants is None:
            return (0.0,)
        return *(times * self.constants.cycles / self.constants.line_bytes for times in READS_PER_FRAME), inf

    def at_price(self, price: float) -> ConstantCycles:
        """The cycles that a kernel's constants cost: the waits for them, or `price` per byte if less."""

        def cycles(kernel: Kernel) -> float:
            size = kernel.constant_bytes
            return min(self.of_constants("", size, kernel.sweeps), price * size) if size else 0

        return cycles


NO_WAITS = CoreWaits()


def core_waits(board: Board) -> CoreWaits:
    return CoreWaits(board.memory_for("code").waits, board.memory_for("constants").waits)
