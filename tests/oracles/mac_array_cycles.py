"""Cycles of the MAC array's command: an independent reading of the hardware manual, section 3.5."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.mac_array_command import Command, Flag, Kind, ceil_div, columns


class Cycles:
    """Cycles of the commands of an array with some figures."""

    def __init__(self, figures: Mapping[str, int]) -> None:
        self._width, self._lanes = figures["width"], figures["lanes"]
        self._wide, self._requantisers = figures["port_bytes"], figures["requantisers"]
        self._setup, self._chained, self._drain = (figures[f"{n}_cycles"] for n in ("setup", "chain", "drain"))
        self._rows, self._kept_parameters = figures["window_rows"], figures["parameter_blocks"]
        self._parameter_bytes = figures["parameter_bytes_per_channel"]

    def of(self, command: Command, *, first: bool) -> int:
        """Cycles from a command's start to its end. `first`: the command is the first of its chain."""
        constants = command.kind == Kind.ADD or Flag.RESIDUAL in command.effective
        start = (self._setup if first else self._chained) + constants
        return start + {
            Kind.CONVOLUTION: self._convolution,
            Kind.DEPTHWISE: self._depthwise,
            Kind.ADD: self._add,
            Kind.MAXIMUM_POOL: self._pool,
            Kind.AVERAGE_POOL: self._pool,
        }[Kind(command.kind)](command)

    def of_check(self, *, first: bool) -> int:
        """Cycles until an error shows."""
        return self._setup if first else 0

    def _end(self, requantise: int, write: int) -> int:
        return self._drain + max(requantise, write)

    def _runs(self, c: Command) -> tuple[int, int]:
        """Runs of a patch, and bytes of each."""
        if c.dilation_x == 1 and c.input_pixel_stride == c.input_channels:
            return c.kernel_height, c.kernel_width * c.input_channels
        return c.taps, c.input_channels

    def _streamed(self, c: Command, weights: int) -> int:
        """Wide accesses for weights."""
        return ceil_div(weights, self._wide * (2 if Flag.NIBBLES in c.effective else 1))

    def _requantise(self, c: Command, results: int) -> int:
        factor = 4 if Flag.RESIDUAL in c.effective else 0 if Flag.RAW in c.effective else 1
        return ceil_div(factor * results, self._requantisers)

    def _access(self, c: Command, pixels: int) -> int:
        """Accesses for `pixels` pixels of 16 results each: written, and read to be added."""
        flags = c.effective
        added = 4 if Flag.ACCUMULATE in flags else 1 if Flag.RESIDUAL in flags else 0
        return pixels * ((4 if Flag.RAW in flags else 1) + added)

    def _convolution(self, c: Command) -> int:
        return self._along_pixels(c) if Flag.PIXELS in c.effective else self._across(c)

    def _across(self, c: Command) -> int:
        groups, blocks = ceil_div(c.pixels, self._lanes), ceil_div(c.output_channels, self._width)
        runs, size = self._runs(c)
        rows = runs * ceil_div(size, self._width)
        second = Flag.SECOND in c.effective
        paired = c.pixels <= self._lanes // 2 and not second
        pixels = c.pixels if paired else self._lanes
        sums = runs * ceil_div(size, 2) if paired else c.depth
        row = self._width if blocks > 1 else columns(c, self._width, c.output_channels)
        weights = c.depth if second else self._streamed(c, c.depth * row)
        if paired:
            weights = runs * self._streamed(c, size * row)
        write, requantise = self._access(c, pixels), self._requantise(c, pixels * self._width)
        block_parameters = ceil_div(self._width * self._parameter_bytes, self._wide)
        kept = blocks <= self._kept_parameters
        parameters = 0 if kept else block_parameters
        alone = groups == 1 and rows <= self._rows
        half = self._rows // 2
        patches = 0 if alone else ceil_div(pixels * rows, blocks) if rows <= half else pixels * rows
        step = max(sums, requantise, weights + write + patches + parameters)
        before = pixels * (rows if alone else min(rows, half)) + (block_parameters * blocks if kept else 0)
        return before + groups * blocks * step + self._end(requantise, write)

    def _along_pixels(self, c: Command) -> int:
        groups, blocks = ceil_div(c.pixels, self._width), ceil_div(c.output_channels, self._lanes)
        runs, size = self._runs(c)
        rows = runs * ceil_div(size, self._width)
        held = self._streamed(c, self._lanes * c.depth)
        if Flag.SECOND in c.effective:
            held = self._lanes * ceil_div(c.depth, self._width)
        raw = Flag.RAW in c.effective
        added = bool(c.effective & (Flag.ACCUMULATE | Flag.RESIDUAL))
        write = self._width * (1 + added)
        requantise = 0 if raw else self._requantise(c, self._width * self._lanes)
        parameters = ceil_div(self._lanes * self._parameter_bytes, self._wide)
        once = c.depth <= self._rows * self._width
        step = max(requantise, self._width * rows + write + (0 if once else held))
        before = blocks * (parameters + (held if once else 0))
        return before + groups * blocks * step + self._width + self._end(requantise, write)

    def _depthwise(self, c: Command) -> int:
        blocks, taps = ceil_div(c.output_channels, self._width), c.taps
        parameters = ceil_div(self._width * self._parameter_bytes, self._wide)
        weights = self._streamed(c, taps * self._width)
        columns = (c.kernel_width - 1) * c.dilation_x + 1
        vectors, tight = c.kernel_height * columns, c.stride_y * c.stride_x > 2
        if c.pixels == 1 or vectors > self._rows or (tight and 2 * vectors > self._rows):
            write, requantise = self._access(c, 1), self._requantise(c, self._width)
            step = max(requantise, taps + weights + write)
            return blocks * parameters + c.pixels * blocks * step + self._end(requantise, write)
        lanes = min(self._lanes, c.output_height)
        strips = ceil_div(c.output_height, self._lanes)
        new = min(c.stride_x, columns)
        column = (lanes - 1) * c.stride_y + (c.kernel_height - 1) * c.dilation_y + 1
        write, requantise = self._access(c, lanes), self._requantise(c, lanes * self._width)
        step = max(taps, requantise, weights + new * column + write)
        strip = (columns - new) * column + c.output_width * step
        return blocks * (parameters + strips * strip) + self._end(requantise, write)

    def _pool(self, c: Command) -> int:
        blocks, least = ceil_div(c.output_channels, self._width), ceil_div(self._width, self._requantisers)
        return c.pixels * blocks * max(c.taps + 1, least) + self._end(least, 1)

    def _add(self, c: Command) -> int:
        strides = {c.input_pixel_stride, c.second_pixel_stride, c.output_pixel_stride}
        if strides == {c.output_channels}:
            pieces = c.output_height * ceil_div(c.output_width * c.output_channels, self._width)
        else:
            pieces = c.pixels * ceil_div(c.output_channels, self._width)
        piece = ceil_div(3 * self._width, self._requantisers)
        return pieces * piece + self._end(piece, 1)
