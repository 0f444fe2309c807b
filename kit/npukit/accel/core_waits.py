"""Cycles in which the core waits for code and constants, as its memories do not answer at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.network import AT_ONCE, Fetches
from npukit.board.board import Board, Waits


@dataclass(frozen=True)
class CoreWaits:
    """The waits of the memories that hold code and constants.

    The constants of the ops in `near` lie in memory without waits.
    """

    code: Waits | None = None
    constants: Waits | None = None
    near: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.code is not None or self.constants is not None

    def with_near(self, gains: Mapping[str, tuple[int, int]], room: int) -> CoreWaits:
        """The waits with those constants near that save most cycles for their bytes, as far as there is room.

        `gains` are what each op's cost in cycles where they are, and their bytes.
        """
        near: set[str] = set()
        for op in sorted(gains, key=lambda op: (-gains[op][0] / gains[op][1], op)):
            if gains[op][1] <= room:
                near.add(op)
                room -= gains[op][1]
        return replace(self, near=frozenset(near))

    @property
    def fetches(self) -> Fetches:
        """The waits for code, by which kernels are chosen."""
        return Fetches(self.code.following / self.code.line_bytes, self.code.code_bytes) if self.code else AT_ONCE

    def of_code(self, kernels: Iterable[Kernel]) -> int:
        """Cycles to fetch the code of kernels as they are called, of which the cache has nothing yet."""
        if self.code is None:
            return 0
        fetched = sum(kernel.body.fetched_bytes(self.code.code_bytes) for kernel in kernels)
        return self.code.following * fetched // self.code.line_bytes

    def of_constants(self, op: str, size: int, sweeps: int) -> int:
        """Cycles to read constants so many times from first to last, as often as the cache does not hold them."""
        if self.constants is None or op in self.near:
            return 0
        times = 1 if size <= self.constants.data_bytes else sweeps
        return self.constants.cycles * times * size // self.constants.line_bytes


NO_WAITS = CoreWaits()


def core_waits(board: Board) -> CoreWaits:
    return CoreWaits(board.memory_for("code").waits, board.memory_for("constants").waits)
