"""A tile as the driver sees it: how many pixels and columns at a time, what memory that takes, and the cycles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd

from npukit.accel.geometry import Plane, Window, depth_of, window_of
from npukit.net.box import Box
from npukit.net.net import Net, Op

from .cycles import (
    CALL,
    CLEARED_BYTE,
    COPIED_BYTE,
    COPIED_PIXEL,
    COPY,
    EDGE,
    LANES,
    NARROWED,
    PIXEL_CHANNEL,
    PIXEL_PRODUCT,
    PIXEL_START,
    PLANE_BYTE,
    PLANE_PIXEL,
    PLANE_ROOM,
    PRODUCT,
    ROW,
    RUN,
    START,
    STARTED,
    WIDTH,
    Figures,
    blocks,
    gathered,
    overlapped,
    padded,
)
from .outcome import Outcome, Results

MOST_PIXELS, MOST_PIXELS_OF_A_LINE = 16, 32
ROOM = 8192
"""Bytes for the rows of a pass's windows, and for the sums of a run of pixels of a line."""
COLUMNS_OF_A_PIXEL = 64
"""Columns of a single pixel at a time: the core requantises some while the array works on the next."""
ROOM_OF_PLANES = 24576
"""Bytes for the planes of a convolution, if they hold what one row of its output needs."""


@dataclass(frozen=True)
class DriverShape:
    """A box of an op's output as the driver sees it."""

    plane: Plane
    window: Window
    channels: int
    depth: int
    cut_lines: int
    """Lines of the windows of the box, taken together, that lie outside of the input."""
    sides: tuple[int, int]
    """Columns of padding on the left and right."""
    lines_seen: int
    """Lines of the windows of all rows that lie inside of the input."""
    apart: bool
    """True if the pixels of a line may lie apart, as those of some channels of an input do."""
    part: int
    """Bytes of a line of the kernel that are summed up at a time."""

    @classmethod
    def of(cls, net: Net, op: Op, output: Box, part: int) -> DriverShape:
        window, shape, plane = window_of(net, op), net.tensor(op.inputs[0]).shape, Plane.of(output)
        if window.taps == 1 and window.strides == (1, 1) and not any(window.padding):
            plane = replace(plane, height=1, width=plane.pixels)  # one long row
        cut, sides, seen = 0, (0, 0), plane.height * window.kernel[0]
        if len(shape) == 4:
            (top, bottom), sides = (_beyond(window, output, axis, shape[axis + 1]) for axis in range(2))
            cut = top + bottom
            rows = range(output.start[1], output.start[1] + plane.height)
            seen -= sum(_lacking(window, row, shape[1]) for row in _ends(rows, window))
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
        """True if the pixels of a row can be rows of products where they lie, for parts of the kernel's lines."""
        dense = self.window.dilation[1] == 1 or self.window.kernel[1] == 1
        return self.part > 0 and self.channels % WIDTH == 0 and dense

    @property
    def run(self) -> int:
        """Pixels of a line at a time."""
        width = self.plane.width
        return min(padded(blocks(width, blocks(width, MOST_PIXELS_OF_A_LINE)), LANES), width)

    @property
    def line(self) -> int:
        """The bytes of a line of the kernel."""
        return self.window.kernel[1] * self.channels

    @property
    def planes(self) -> int:
        """The sums that the core adds to one."""
        return self.window.kernel[0] * blocks(self.line, self.part or self.line)

    @property
    def is_pixel(self) -> bool:
        """True of a single pixel of one line that lies in the input and is summed up at once, as a dense layer's."""
        return self.plane.pixels == self.planes == 1 and not (self.cut_lines or any(self.sides))

    @property
    def columns(self) -> int:
        """Columns of a run at a time: with several planes the weights of one lie apart."""
        whole = padded(self.plane.channels, WIDTH)
        if self.is_pixel:
            return min(whole, COLUMNS_OF_A_PIXEL)
        return min(whole, max(ROOM // (4 * self.run) // WIDTH, 1) * WIDTH) if self.planes == 1 else WIDTH

    @property
    def row_stride(self) -> int:
        """The bytes of a row of a plane, borders included."""
        return padded(padded(self.plane.width, WIDTH) + self.window.kernel[1] - 1, WIDTH)

    @property
    def rows_of_planes(self) -> int:
        """Rows of the output for which a convolution makes planes at a time."""
        lines = ROOM_OF_PLANES // (self.row_stride * self.channels)
        most = min(max(lines - self.window.kernel[0] + 1, 1), self.plane.height)
        return blocks(self.plane.height, blocks(self.plane.height, most))

    @property
    def lines_of_planes(self) -> int:
        """Lines of the input of which there are planes at a time."""
        return self.rows_of_planes + self.window.kernel[0] - 1

    @property
    def scratch_of_lines(self) -> int:
        """A line of the kernel, the sums of a run twice, and padded lines of the input."""
        sums = 2 * padded(4 * self.planes * self.run * self.columns, WIDTH)
        return self.line + sums + self.reach * self.padded_line * self.are_copied

    @property
    def are_copied(self) -> bool:
        """True if lines of the input are copied."""
        return any(self.sides) or (self.apart and self.window.kernel[1] > 1)

    @property
    def reach(self) -> int:
        """Lines of the input from the first to the last that a pixel sees."""
        return (self.window.kernel[0] - 1) * self.window.dilation[0] + 1

    @property
    def input_width(self) -> int:
        window = self.window
        seen = (self.plane.width - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilation[1] + 1
        return seen - sum(self.sides)

    @property
    def padded_line(self) -> int:
        """The bytes of a line of the input with what pads it."""
        return (self.input_width + sum(self.sides)) * self.channels

    def scratch_of_windows(self, slots: int = 0) -> int:
        return 2 * self.at_once * (padded(self.depth + slots, WIDTH) + 4 * padded(self.plane.channels, WIDTH))

    @property
    def scratch_of_planes(self) -> int:
        """Planes, and the sums of a row twice."""
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
        """Cycles of a single pixel: some columns at a time."""
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
        """The same with `slots` that bring biases, shifted by the array."""
        pixels, channels, passes = self.plane.pixels, self.plane.channels, blocks(self.plane.pixels, self.at_once)
        finish = pixels * (NARROWED[0] + channels * NARROWED[1]) + passes * CALL
        return overlapped(passes, figures.product(self.at_once, self.depth + slots, channels), self._gathered, finish)

    @property
    def _gathered(self) -> float:
        (height, width), padding = self.window.kernel, self.window.padding
        copies = 1 if self.window.taps == 1 else 2
        aligned = (gcd(self.channels, 4) / 4) ** copies
        cut_off = self.plane.height * sum(each > 0 for each in padding[1::2]) * height * width
        return gathered(self.plane.pixels, height, width * self.channels, aligned) + cut_off * EDGE

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
    """Places of padding before and behind what a box of the output sees of the input along an axis."""
    first = output.start[axis + 1] * window.strides[axis] - window.padding[axis]
    reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1
    last = (output.stop[axis + 1] - 1) * window.strides[axis] - window.padding[axis] + reach
    return max(-first, 0), max(last - size, 0)


def _ends(rows: range, window: Window) -> list[int]:
    """The rows of the output whose windows may be cut: those within the padding of either end."""
    reach = blocks(window.kernel[0] * window.dilation[0], window.strides[0]) + 1
    return [*rows] if len(rows) <= 2 * reach else [*rows[:reach], *rows[-reach:]]


def _lacking(window: Window, row: int, size: int) -> int:
    """Lines of a row's windows that lie outside of an input of so many."""
    first = row * window.strides[0] - window.padding[0]
    lines = range(first, first + window.kernel[0] * window.dilation[0], window.dilation[0])
    return sum(not 0 <= line < size for line in lines)
