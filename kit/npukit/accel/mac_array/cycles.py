"""Cycles of a command by the formulas of the hardware manual, section 3.5, and the array's better orientation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from npukit.accel.geometry import Plane, depth_of, window_of
from npukit.board.board import AcceleratorSlot
from npukit.net.net import Net, Op

WRITE_BACK, RAW_WRITE_BACK = 4, 16
"""Cycles to write 64 int8 results, or to read 64 int8 values to add to them; cycles to write 64 int32 results."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True)
class Figures:
    """The array's dimensions, from the board file."""

    width: int
    lanes: int
    port_bytes: int
    setup_cycles: int
    accumulator_bits: int
    operand_bytes_per_lane: int
    parameter_bytes_per_channel: int

    @classmethod
    def of(cls, slot: AcceleratorSlot) -> Figures:
        return cls(**slot.figures)

    def parameter_cycles(self, channels: int) -> int:
        return ceil_div(channels * self.parameter_bytes_per_channel, self.port_bytes)

    def convolution(
        self, pixels: int, channels: int, depth: int, *, along_pixels: bool, write_back: int = WRITE_BACK
    ) -> int:
        """Cycles of a convolution. `depth`: kernel height * kernel width * input channels."""
        streamed, held = (pixels, channels) if along_pixels else (channels, pixels)
        wide, narrow = ceil_div(streamed, self.width), ceil_div(held, self.lanes)
        blocks, block = (narrow, self.lanes) if along_pixels else (wide, self.width)
        load = ceil_div(self.lanes * depth, self.port_bytes)
        loads = 1 if depth <= self.operand_bytes_per_lane else wide
        return (
            self.setup_cycles
            + blocks * self.parameter_cycles(block)
            + narrow * load * loads
            + wide * narrow * (depth + write_back)
        )

    def depthwise(self, pixels: int, channels: int, taps: int, *, residual: bool = False) -> int:
        blocks = ceil_div(channels, self.width)
        work = pixels * blocks * (taps + 1 + residual)
        return self.setup_cycles + blocks * (self.parameter_cycles(self.width) + taps) + work

    def addition(self, elements: int) -> int:
        return self.setup_cycles + 3 * ceil_div(elements, self.width)

    def pool(self, pixels: int, channels: int, taps: int) -> int:
        return self.setup_cycles + pixels * ceil_div(channels, self.width) * (taps + 1)


def along_pixels(figures: Figures, plane: Plane, depth: int) -> bool:
    """True if the wide axis of the array is faster along pixels than along channels."""
    cycles = partial(figures.convolution, plane.pixels, plane.channels, depth)
    return cycles(along_pixels=True) < cycles(along_pixels=False)


def cycles_of(net: Net, op: Op, plane: Plane, figures: Figures) -> int:
    """Cycles of the command for a plane of the op's output."""
    main, residual = op.parts[0], len(op.parts) > 1
    kind, taps = main.kind, window_of(net, main).taps
    if kind == "add":
        return figures.addition(plane.pixels * plane.channels)
    if kind in ("depthwise_conv2d", "mean"):
        return figures.depthwise(plane.pixels, plane.channels, taps, residual=residual)
    if kind in ("average_pool", "max_pool"):
        return figures.pool(plane.pixels, plane.channels, taps)
    depth = depth_of(net, main)
    choice = along_pixels(figures, plane, depth)
    write_back = RAW_WRITE_BACK if kind == "sums" else WRITE_BACK * (1 + residual)
    return figures.convolution(plane.pixels, plane.channels, depth, along_pixels=choice, write_back=write_back)
