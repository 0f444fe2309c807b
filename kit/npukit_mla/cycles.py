"""The cycles of a tile: the array's as they are published, and the core's around it as the emulator counts them."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH, LANES = 16, 4
OUT_CYCLES = 16
"""The cycles in which the sums of a block leave, four a cycle."""
START, CALL, ROW = 190, 245, 178
"""Cycles of the driver: of a tile, of each pass of windows, and of each row of planes."""
PIXEL_START, PIXEL_PRODUCT, PIXEL_CHANNEL = 185, 45, 21
"""Cycles of the driver for a single pixel: of the tile, of each of its products, of each channel that is plain."""
RUN, PRODUCT, STARTED = 160, 350, 140
"""Cycles of the driver for each run of pixels of a line, and for each of its products; of these the array stands still
for the last, where it has more to do than the core."""
COPY, COPIED_PIXEL, COPIED_BYTE, CLEARED_BYTE = 60, 12, 0.85, 0.5
"""Cycles to copy a line of the input: for the line, for each pixel that lies apart from the next, for each byte; and
for each byte of room that is cleared."""
PIXEL, LINE, EDGE = 60, 75, 75
"""Cycles to gather a pixel's window: for the pixel, for each of its lines, for each place of one that is cut off."""
WORD_S_BYTE, BYTE = 2.1, 4.1
"""Cycles to gather a byte of a line, where four are copied at once and where each is by itself."""
PLAIN, OF_TWO, OF_THREE, GENERAL = (45, 14), (55, 16), (55, 18), (67, 31)
"""Cycles to requantise: for each channel of a pass, and for each value; of layers that are plain (`mla.h`), of those
whose sums are in two and three planes, and of others."""
RAW = (0, 14)
"""The same of sums that stay sums, of one plane."""
KEEPS, KEPT, ADDED = (29, 0), (29, 8), (61, 14)
"""Cycles besides, where sums stay sums, where kept ones are added, and where something is added to results: for each
pixel and product, with which the core finishes some channels, and for each value."""
NARROWED = 55, 4
"""Cycles to make int8 of what the array has shifted: for each pixel, and for each value."""
PLANE = 6
"""Cycles to add a value of one more plane, where the core has no short way."""
PLANE_BYTE, PLANE_PIXEL, PLANE_ROOM = 7.0, 15, 1.25
"""Cycles to make planes of the input: for each byte, for each pixel, and for each byte of room that is cleared."""


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


def gathered(pixels: int, lines: int, line_bytes: int, aligned: float) -> float:
    """Cycles to gather windows of lines, that share of which lies at whole words."""
    byte = BYTE - (BYTE - WORD_S_BYTE) * aligned
    return pixels * (PIXEL + lines * (LINE + line_bytes * byte))


def overlapped(passes: int, array: int, gather: float, finish: float) -> int:
    """Passes in which the core gathers for the pass to come and finishes the one before while the array works."""
    one_gather, one_finish = gather / passes, finish / passes
    beside = [array] if passes == 1 else [max(array, one_gather), max(array, one_finish)]
    between = max(passes - 2, 0) * max(array, one_gather + one_finish)
    return round(START + one_gather + sum(beside) + between + one_finish)
