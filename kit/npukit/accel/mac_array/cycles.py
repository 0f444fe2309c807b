"""The cycles of a command: the formulas of the hardware manual, section 3.5."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.board.board import AcceleratorSlot

WRITE_BACK, RAW_WRITE_BACK = 4, 16
"""Cycles to write 64 results in int8, or to read 64 int8 that are added to them; to write 64 in int32."""


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
        """A convolution of `depth` = kernel height * kernel width * input channels."""
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
