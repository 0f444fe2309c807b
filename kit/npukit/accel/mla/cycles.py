"""The cost of a tile: the array's cycles as it is published, and the core's around it as the emulator counts them."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH, LANES = 16, 4
OUT_CYCLES = 16
"""The cycles in which the sums of a block leave, four a cycle."""
CALL = 130
"""Cycles of the core to start the array and to wake from it, and of a pass of the driver's loop."""
PIXEL, LINE, BYTE = 90, 140, 2.0
"""Cycles to gather a pixel's window: for the pixel, for each of its lines, for each byte."""
CHANNEL, VALUE = 65, 47
"""Cycles to requantise: for each channel of a pass, and for each value."""
PLANE_BYTE, PLANE_PIXEL = 6.5, 14
"""Cycles to make planes of the input: for each byte, and for each pixel."""
START = 400


def blocks(count: int, each: int) -> int:
    return -(-count // each)


def padded(count: int, to: int) -> int:
    return blocks(count, to) * to


@dataclass(frozen=True)
class Figures:
    """The array's figures in the board file."""

    setup_cycles: int
    accumulator_bits: int

    def product(self, rows: int, depth: int, columns: int) -> int:
        """A product of matrices: 4 rows and 16 columns at a time, a term of their sums each cycle."""
        return self.setup_cycles + blocks(rows, LANES) * blocks(columns, WIDTH) * (padded(depth, WIDTH) + OUT_CYCLES)

    def convolution(self, rows: int, width: int, channels: int, depth: int) -> int:
        """A convolution of stride 1: 16 pixels of a row and 4 channels at a time."""
        return self.setup_cycles + rows * blocks(width, WIDTH) * blocks(channels, LANES) * (depth + OUT_CYCLES)


def requantised(values: int, channels: int) -> int:
    return channels * CHANNEL + values * VALUE


def gathered(pixels: int, lines: int, depth: int) -> int:
    return round(pixels * (PIXEL + lines * LINE + depth * BYTE))


def overlapped(passes: int, array: int, core: int, last: int) -> int:
    """Passes in which the array and the core work side by side, and what the core does behind the last of them."""
    return START + passes * (CALL + max(array, core)) + last
