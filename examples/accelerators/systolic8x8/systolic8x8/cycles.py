"""Costs of a tile: the manual's formulas for the array, plus the driver's cycles on the core."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.accel.geometry import Plane

SIDE = 8
CORE_PER_COMMAND = 45
"""Cycles of the core to start a command and to wake after its end."""

CORE_PER_RESULT = 39
"""Cycles of the core to requantise an accumulator, as measured on the emulator."""

CORE_PER_COLUMN = 62
"""Cycles of the core to begin an output channel in a pass."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class Figures:
    """The array's figures in the board file."""

    scratchpad_bytes: int
    accumulator_rows: int
    port_bytes: int
    setup_cycles: int

    def rows_at_once(self, width: int, depth: int) -> int:
        """Pixels of an output row in a single pass."""
        return min(width, self.accumulator_rows, self.scratchpad_bytes // depth)

    def cycles(self, plane: Plane, depth: int, taps: int, channels: int, at_once: int) -> int:
        """Cycles of a plane. `depth` is padded to whole sides; a tap has `channels` inputs, a pass `at_once` pixels."""
        full, rest = divmod(plane.width, at_once)
        passes = [at_once] * full + ([rest] if rest else [])
        return plane.height * sum(self._pass(rows, plane.channels, depth, taps, channels) for rows in passes)

    def _pass(self, rows: int, outputs: int, depth: int, taps: int, channels: int) -> int:
        gather = self._moved(rows, depth) + taps * self._moved(rows, channels)
        multiply = self._command(depth // SIDE * (SIDE + rows) + 2 * SIDE)
        store = self._command(rows * 4 * SIDE // self.port_bytes)
        requantise = outputs * (CORE_PER_COLUMN + CORE_PER_RESULT * rows)
        blocks = ceil_div(outputs, SIDE)
        return gather + multiply + blocks * store + max((blocks - 1) * multiply, requantise)

    def _moved(self, rows: int, row_bytes: int) -> int:
        return self._command(rows * ceil_div(row_bytes, self.port_bytes))

    def _command(self, cycles: int) -> int:
        return CORE_PER_COMMAND + self.setup_cycles + cycles
