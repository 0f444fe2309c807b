"""The plan of a depthwise convolution's code, with registers and frame."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.accel.cortex_m.code.planes import Group, RowTile, WeightPlace
from npukit.accel.cortex_m.layout import Layout, Order

INPUT, OUTPUT = "r6", "r7"
ACCUMULATORS = ("r8", "r9", "r10", "r11")
FIRST, SECOND = "r12", "lr"
FRAME_MULTIPLIER = 0
FRAME_ADDEND = 4
FRAME_EXPONENT = 12
FRAME_BIAS = 16
FRAME_WEIGHTS = 20
FRAME_CONSTANTS = 24
FRAME_PLANE = 32
FRAME_ROWS_END = 40
FRAME_COLUMNS_END = 44
FRAME_BYTES = 52


@dataclass(frozen=True)
class DepthwisePlan:
    """Parameters of the emitter."""

    channels: int
    row_step: int
    source: Layout
    target: Layout
    exponent: int | None
    """The exponent E of all channels (`requantize.py`), or None if each channel has its own"""
    ties: bool
    resident: bool
    weights: WeightPlace
    tiles: tuple[RowTile, ...]
    groups: tuple[Group, ...]
    unrolled_groups: int

    @property
    def halfwords(self) -> bool:
        return self.source.order is Order.PLANES16

    @property
    def tiles_start_alike(self) -> bool:
        """True if equal tiles, which share code, start all at a word boundary or all off a boundary."""
        return self.tiles[0].height * self.row_step * strides(self)[0] % 4 == 0

    @property
    def weight_registers(self) -> tuple[str, ...]:
        """The registers of weights loaded together: of the whole kernel, or of a row."""
        rows = self.weights.rows if self.resident else self.weights.rows[:1]
        return tuple(sorted({register for row in rows for register, _ in row}))

    @property
    def weight_words(self) -> int:
        return len(self.weight_registers) * (1 if self.resident else len(self.weights.rows))


def pointed_row(plan: DepthwisePlan, tile: RowTile) -> int:
    """The input row of the pointer: the tile's first row, or the row before if the first does not start at a word."""
    return tile.first_input - (tile.first_input * strides(plan)[0] % 4 != 0)


def strides(plan: DepthwisePlan) -> tuple[int, int]:
    """Bytes between rows of a plane, of input and output."""
    if plan.source.transposed:
        return plan.source.column_stride, plan.target.column_stride
    return plan.source.row_stride, plan.target.row_stride


def column_strides(plan: DepthwisePlan) -> tuple[int, int]:
    """Bytes between columns of a plane, of input and output."""
    if plan.source.transposed:
        return plan.source.row_stride, plan.target.row_stride
    return plan.source.column_stride, plan.target.column_stride
