"""A tile as the driver computes it: pixels and columns per pass, scratch memory, and cycles.

The cycles of the array are the published figures; the cycles of the driver on the core are measured in the emulator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd

from npukit.accel.geometry import Plane, Window, depth_of, window_of
from npukit.net.box import Box
from npukit.net.net import Net, Op

from .outcome import Outcome, Results

WIDTH, LANES = 16, 4
OUT_CYCLES = 16
"""Cycles to write the sums of a block, four sums a cycle."""
START, CALL, ROW = 190, 245, 178
"""Cycles of the driver: per tile, per pass of windows, per row of planes."""
PIXEL_START, PIXEL_PRODUCT, PIXEL_CHANNEL = 185, 45, 21
"""Cycles of the driver for a single pixel: per tile, per product, per plain channel (`mla.h`)."""
RUN, PRODUCT, STARTED = 160, 350, 140
"""Cycles of the driver per run of pixels of a line, and per product. The array idles for the last of these, `STARTED`,
if the array is the bottleneck."""
COPY, COPIED_PIXEL, COPIED_BYTE, CLEARED_BYTE = 60, 12, 0.85, 0.5
"""Cycles to copy an input line: per line, per pixel if pixels have gaps, per byte; and per cleared byte."""
PIXEL, LINE, EDGE = 60, 75, 75
"""Cycles to gather a pixel's window: per pixel, per line, per position of a window that is cut off."""
WORD_S_BYTE, BYTE = 2.1, 4.1
"""Cycles to gather a byte of a line: in words, and singly."""
NARROWED = 55, 4
"""Cycles to convert shifted results to int8: per pixel, and per value."""
PLANE_BYTE, PLANE_PIXEL, PLANE_ROOM = 7.0, 15, 1.25
"""Cycles to write planes of the input: per byte, per pixel, per cleared byte."""
MOST_PIXELS, MOST_PIXELS_OF_A_LINE = 16, 32
ROOM = 8192
"""Bytes for the rows of a pass's windows, and for the sums of a run of pixels of a line."""
COLUMNS_OF_A_PIXEL = 64
"""Columns of a single pixel per product: the core requantises some while the array computes the next."""
ROOM_OF_PLANES = 24576
"""Bytes for the planes of a convolution. A row of the output may need more."""


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
        """A product of matrices: 4 rows and 16 columns at a time, a term per cycle."""
        return self.setup_cycles + blocks(rows, LANES) * blocks(columns, WIDTH) * (padded(depth, WIDTH) + OUT_CYCLES)

    def convolution(self, rows: int, width: int, channels: int, depth: int) -> int:
        """A convolution of stride 1: 16 pixels of a row and 4 channels at a time."""
        return self.setup_cycles + rows * blocks(width, WIDTH) * blocks(channels, LANES) * (depth + OUT_CYCLES)


def overlapped(passes: int, array: int, gather: float, finish: float) -> int:
    """Cycles of passes. While the array works, the core finishes the pass before and gathers the next."""
    one_gather, one_finish = gather / passes, finish / passes
    beside = [array] if passes == 1 else [max(array, one_gather), max(array, one_finish)]
    between = max(passes - 2, 0) * max(array, one_gather + one_finish)
    return round(START + one_gather + sum(beside) + between + one_finish)


@dataclass(frozen=True)
class DriverShape:
    """A box of an op's output as the driver computes it."""

    plane: Plane
    window: Window
    channels: int
    depth: int
    cut_lines: int
    """Lines above and below the input in the union of the box's windows."""
    sides: tuple[int, int]
    """Columns of padding left and right."""
    lines_seen: int
    """Lines inside the input, summed over the windows of all rows."""
    apart: bool
    """True if the pixels of a line may have gaps: the op reads some channels of the input."""
    part: int
    """Bytes of a kernel line per product."""

    @classmethod
    def of(cls, net: Net, op: Op, output: Box, part: int) -> DriverShape:
        window, shape, plane = window_of(net, op), net.tensor(op.inputs[0]).shape, Plane.of(output)
        if window.taps == 1 and window.strides == (1, 1) and not any(window.padding):
            plane = replace(plane, height=1, width=plane.pixels)  # a single long row
        cut, sides, seen = 0, (0, 0), plane.height * window.kernel[0]
        if len(shape) == 4:
            (top, bottom), sides = (_beyond(window, output, axis, shape[axis + 1]) for axis in range(2))
            cut = top + bottom
            rows = range(output.start[1], output.start[1] + plane.height)
            seen = _lines_inside(window, rows, shape[1])
        depth = depth_of(net, op)
        channels = depth // window.taps
        return cls(plane, window, channels, depth, cut, sides, seen, channels < shape[-1], part)

    @property
    def at_once(self) -> int:
        """Pixels of a pass of windows."""
        room = ROOM // padded(self.depth, WIDTH) // LANES * LANES
        return min(self.plane.pixels, MOST_PIXELS, max(room, LANES))

    @property
    def may_be_lines(self) -> bool:
        """True if the pixels of a row can be the rows of products in place, for parts of kernel lines."""
        dense = self.window.dilation[1] == 1 or self.window.kernel[1] == 1
        return self.part > 0 and self.channels % WIDTH == 0 and dense

    @property
    def run(self) -> int:
        """Pixels of a line per product."""
        width = self.plane.width
        return min(padded(blocks(width, blocks(width, MOST_PIXELS_OF_A_LINE)), LANES), width)

    @property
    def line(self) -> int:
        """Bytes of a kernel line."""
        return self.window.kernel[1] * self.channels

    @property
    def planes(self) -> int:
        """Sums per result that the core adds."""
        return self.window.kernel[0] * blocks(self.line, self.part or self.line)

    @property
    def is_pixel(self) -> bool:
        """True for a single pixel of a single line inside the input, summed in one product: a dense layer."""
        return self.plane.pixels == self.planes == 1 and not (self.cut_lines or any(self.sides))

    @property
    def columns(self) -> int:
        """Columns of a run per product. With several planes, a block of columns: the weights of a plane have gaps."""
        whole = padded(self.plane.channels, WIDTH)
        if self.is_pixel:
            return min(whole, COLUMNS_OF_A_PIXEL)
        return min(whole, max(ROOM // (4 * self.run) // WIDTH, 1) * WIDTH) if self.planes == 1 else WIDTH

    @property
    def row_stride(self) -> int:
        """Bytes of a row of a plane, borders included."""
        return padded(padded(self.plane.width, WIDTH) + self.window.kernel[1] - 1, WIDTH)

    @property
    def rows_of_planes(self) -> int:
        """Rows of the output per set of planes."""
        lines = ROOM_OF_PLANES // (self.row_stride * self.channels)
        most = min(max(lines - self.window.kernel[0] + 1, 1), self.plane.height)
        return blocks(self.plane.height, blocks(self.plane.height, most))

    @property
    def lines_of_planes(self) -> int:
        """Lines of the input per set of planes."""
        return self.rows_of_planes + self.window.kernel[0] - 1

    @property
    def scratch_of_lines(self) -> int:
        """Bytes of a kernel line, of two buffers for the sums of a run, and of padded lines of the input."""
        sums = 2 * padded(4 * self.planes * self.run * self.columns, WIDTH)
        return self.line + sums + self.reach * self.padded_line * self.are_copied

    @property
    def are_copied(self) -> bool:
        """True if the driver copies lines of the input."""
        return any(self.sides) or (self.apart and self.window.kernel[1] > 1)

    @property
    def reach(self) -> int:
        """Lines of the input from the first to the last of a pixel's window."""
        return (self.window.kernel[0] - 1) * self.window.dilation[0] + 1

    @property
    def input_width(self) -> int:
        window = self.window
        seen = (self.plane.width - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilation[1] + 1
        return seen - sum(self.sides)

    @property
    def padded_line(self) -> int:
        """Bytes of a line of the input with its padding."""
        return (self.input_width + sum(self.sides)) * self.channels

    def scratch_of_windows(self, slots: int = 0) -> int:
        return 2 * self.at_once * (padded(self.depth + slots, WIDTH) + 4 * padded(self.plane.channels, WIDTH))

    @property
    def scratch_of_planes(self) -> int:
        """Bytes of planes, and of two buffers for the sums of a row."""
        sums = 4 * padded(self.plane.width, WIDTH) * self.plane.channels
        return self.row_stride * self.lines_of_planes * self.channels + 2 * sums

    def lines(self, figures: Figures, outcome: Outcome, zero: int) -> int:
        """Cycles as products of lines."""
        if self.is_pixel:
            return self._pixel(figures, outcome)
        height, plane = self.window.kernel[0], self.plane
        times = blocks(plane.channels, self.columns)
        chunks, columns = blocks(plane.width, self.run), ceil(plane.channels / times)
        pixels = ceil(plane.width / chunks)
        lines = height if zero else max(self.lines_seen / plane.height, 1)
        products = lines * blocks(self.line, self.part)
        array = products * figures.product(pixels, ceil(self.line / blocks(self.line, self.part)), columns)
        finish = outcome.cycles(1, columns, columns * plane.width // chunks, self.planes)
        runs = plane.height * chunks * times
        between = max(array + products * STARTED, finish + products * PRODUCT)
        worked = array + products * PRODUCT + (runs - 1) * between + finish + runs * RUN
        copied = ((plane.height - 1) * self.window.strides[0] + self.reach - self.cut_lines) * self.are_copied
        copies = copied * (COPY + self.input_width * (COPIED_PIXEL * self.apart + COPIED_BYTE * self.channels))
        borders = self.line * (zero != 0 and self.lines_seen < plane.height * height)
        cleared = CLEARED_BYTE * (borders + self.reach * self.padded_line * self.are_copied)
        return round(START + cleared + copies + worked)

    def _pixel(self, figures: Figures, outcome: Outcome) -> int:
        """Cycles for a single pixel."""
        channels, times = self.plane.channels, blocks(self.plane.channels, self.columns)
        array = figures.product(1, self.line, min(channels, self.columns))
        short = outcome == Outcome(Results.PLAIN)
        finish = (channels * PIXEL_CHANNEL if short else outcome.cycles(1, channels, channels)) / times
        between = (times - 1) * max(array, finish)
        return round(PIXEL_START + times * PIXEL_PRODUCT + array + between + finish)

    def windows(self, figures: Figures, outcome: Outcome) -> int:
        """Cycles as products of windows."""
        pixels, channels, passes = self.plane.pixels, self.plane.channels, blocks(self.plane.pixels, self.at_once)
        finish = outcome.cycles(passes, channels, pixels * channels) + passes * CALL
        return overlapped(passes, figures.product(self.at_once, self.depth, channels), self._gathered, finish)

    def shifted(self, figures: Figures, slots: int) -> int:
        """Cycles as products of windows with `slots` bytes for biases, shifted by the array."""
        pixels, channels, passes = self.plane.pixels, self.plane.channels, blocks(self.plane.pixels, self.at_once)
        finish = pixels * (NARROWED[0] + channels * NARROWED[1]) + passes * CALL
        return overlapped(passes, figures.product(self.at_once, self.depth + slots, channels), self._gathered, finish)

    @property
    def _gathered(self) -> float:
        """Cycles to gather the windows. `aligned`: share of the bytes in whole words."""
        (height, width), padding = self.window.kernel, self.window.padding
        copies = 1 if self.window.taps == 1 else 2
        aligned = (gcd(self.channels, 4) / 4) ** copies
        cut_off = self.plane.height * sum(each > 0 for each in padding[1::2]) * height * width
        byte = BYTE - (BYTE - WORD_S_BYTE) * aligned
        return self.plane.pixels * (PIXEL + height * (LINE + width * self.channels * byte)) + cut_off * EDGE

    def convolutions(self, figures: Figures, outcome: Outcome) -> int:
        """Cycles as convolutions, row by row."""
        plane, times = self.plane, blocks(self.plane.height, self.rows_of_planes)
        array = figures.convolution(1, plane.width, plane.channels, self.depth)
        finish = outcome.cycles(plane.height, plane.channels, plane.pixels * plane.channels)
        pixels = (times * self.lines_of_planes - self.cut_lines) * plane.width
        room = times * self.row_stride * self.lines_of_planes * self.channels * PLANE_ROOM
        planes = pixels * (self.channels * PLANE_BYTE + PLANE_PIXEL) + room
        return overlapped(plane.height, array, 0, finish + plane.height * ROW) + round(planes)


def _beyond(window: Window, output: Box, axis: int, size: int) -> tuple[int, int]:
    """Positions of padding before and behind the input that a box of the output needs along an axis."""
    first = output.start[axis + 1] * window.strides[axis] - window.padding[axis]
    reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1
    last = (output.stop[axis + 1] - 1) * window.strides[axis] - window.padding[axis] + reach
    return max(-first, 0), max(last - size, 0)


def _lines_inside(window: Window, rows: range, size: int) -> int:
    """Lines inside an input of `size` lines, summed over the windows of rows of the output."""
    stride, found = window.strides[0], 0
    for ky in range(window.kernel[0]):
        offset = ky * window.dilation[0] - window.padding[0]
        found += len(range(max(rows.start, -(offset // stride)), min(rows.stop, (size - 1 - offset) // stride + 1)))
    return found
