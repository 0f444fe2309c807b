"""Cycles of a command by the formulas of the hardware manual, section 3.5, and the array's better orientation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from npukit.accel.geometry import Plane, Window, depth_of, window_of
from npukit.accel.mac_array.additions import plane_of
from npukit.board.board import AcceleratorSlot
from npukit.net.net import Net, Op

ADDITIONS = ("add", "subtract", "multiply")
"""The kinds of op that the array computes by the command of an addition."""


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def columns_of(channels: int, width: int, *, nibbles: bool = False) -> int:
    """Weights of a product in the first block of channels: 4, 8 or all 16; of 4 bits 8 at least."""
    widths = (width // 4, width // 2, width)[nibbles:]
    return next(each for each in widths if each >= min(channels, width))


@dataclass(frozen=True)
class Patch:
    """The input of an output pixel: runs of consecutive bytes."""

    runs: int
    run_bytes: int

    @classmethod
    def of(cls, window: Window, channels: int, *, dense: bool = True) -> Patch:
        """`dense`: no bytes lie between neighbouring pixels of the input."""
        height, width = window.kernel
        if dense and window.dilation[1] == 1:
            return cls(height, width * channels)
        return cls(height * width, channels)

    @property
    def depth(self) -> int:
        """Products of a sum."""
        return self.runs * self.run_bytes


@dataclass(frozen=True)
class Flags:
    """Flags of a command that change its cycles."""

    raw: bool = False
    residual: bool = False
    second: bool = False
    nibbles: bool = False


@dataclass(frozen=True)
class Figures:
    """The array's dimensions, from the board file."""

    width: int
    lanes: int
    port_bytes: int
    requantisers: int
    window_rows: int
    parameter_blocks: int
    parameter_bytes_per_channel: int
    accumulator_bits: int
    setup_cycles: int
    chain_cycles: int
    drain_cycles: int

    @classmethod
    def of(cls, slot: AcceleratorSlot) -> Figures:
        return cls(**slot.figures)

    def convolution(
        self, pixels: int, channels: int, patch: Patch, *, along_pixels: bool, flags: Flags = Flags()
    ) -> int:
        work = self._along_pixels if along_pixels else self._across_channels
        return self.setup_cycles + flags.residual + work(pixels, channels, patch, flags)

    def depthwise(self, plane: Plane, window: Window, flags: Flags = Flags()) -> int:
        blocks, taps = ceil_div(plane.channels, self.width), window.taps
        columns = (window.kernel[1] - 1) * window.dilation[1] + 1
        before = self.setup_cycles + flags.residual + blocks * self._parameters(self.width)
        vectors, tight = window.kernel[0] * columns, window.strides[0] * window.strides[1] > 2
        if plane.pixels == 1 or vectors > self.window_rows or (tight and 2 * vectors > self.window_rows):
            requantise, write = self._output(1, flags)
            step = max(requantise, taps + self._accesses(taps * self.width, flags) + write)
            return before + plane.pixels * blocks * step + self._drain(requantise, write)
        lanes, strips = min(self.lanes, plane.height), ceil_div(plane.height, self.lanes)
        loaded = min(window.strides[1], columns)
        column = (lanes - 1) * window.strides[0] + (window.kernel[0] - 1) * window.dilation[0] + 1
        requantise, write = self._output(lanes, flags)
        weights = self._accesses(taps * self.width, flags)
        step = max(taps, requantise, weights + loaded * column + write)
        strip = (columns - loaded) * column + plane.width * step
        return before + blocks * strips * strip + self._drain(requantise, write)

    def addition(self, plane: Plane, *, by_pixel: bool = False) -> int:
        """Cycles of adding tensors without bytes between the pixels of a row. `by_pixel`: an operand has a single pixel
        for a row."""
        piece = ceil_div(3 * self.width, self.requantisers)
        rows, size = (plane.pixels, 1) if by_pixel else (plane.height, plane.width)
        pieces = rows * ceil_div(size * plane.channels, self.width)
        return self.setup_cycles + 1 + pieces * piece + self._drain(piece, 1)

    def pool(self, pixels: int, channels: int, taps: int) -> int:
        finish = ceil_div(self.width, self.requantisers)
        work = pixels * ceil_div(channels, self.width) * max(taps + 1, finish)
        return self.setup_cycles + work + self._drain(finish, 1)

    def _across_channels(self, pixels: int, channels: int, patch: Patch, flags: Flags) -> int:
        groups, blocks = ceil_div(pixels, self.lanes), ceil_div(channels, self.width)
        rows = self._rows(patch)
        paired = pixels <= self.lanes // 2 and not flags.second
        held = pixels if paired else self.lanes
        sums = patch.runs * ceil_div(patch.run_bytes, 2) if paired else patch.depth
        columns = columns_of(channels, self.width, nibbles=flags.nibbles)
        weights = patch.depth if flags.second else self._accesses(patch.depth * columns, flags)
        if paired:
            weights = patch.runs * self._accesses(patch.run_bytes * columns, flags)
        requantise, write = self._output(held, flags)
        parameters, half = self._parameters(self.width), self.window_rows // 2
        kept = blocks <= self.parameter_blocks
        alone = groups == 1 and rows <= self.window_rows
        loads = 0 if alone else ceil_div(held * rows, blocks) if rows <= half else held * rows
        step = max(sums, requantise, weights + write + loads + (0 if kept else parameters))
        before = (parameters * blocks if kept else 0) + held * (rows if alone else min(rows, half))
        return before + groups * blocks * step + self._drain(requantise, write)

    def _along_pixels(self, pixels: int, channels: int, patch: Patch, flags: Flags) -> int:
        groups, blocks = ceil_div(pixels, self.width), ceil_div(channels, self.lanes)
        held = self._accesses(self.lanes * patch.depth, flags)
        if flags.second:
            held = self.lanes * ceil_div(patch.depth, self.width)
        once = patch.depth <= self.window_rows * self.width
        requantise, _ = self._output(self.lanes, flags)
        write = self.width * (1 + flags.residual)
        step = max(requantise, self.width * self._rows(patch) + write + (0 if once else held))
        before = blocks * (self._parameters(self.lanes) + (held if once else 0))
        return before + groups * blocks * step + self.width + self._drain(requantise, write)

    def _rows(self, patch: Patch) -> int:
        """Rows of the operand file for a patch."""
        return patch.runs * ceil_div(patch.run_bytes, self.width)

    def _accesses(self, weights: int, flags: Flags) -> int:
        """Port accesses for a number of weights."""
        return ceil_div(weights, self.port_bytes * (2 if flags.nibbles else 1))

    def _parameters(self, channels: int) -> int:
        return ceil_div(channels * self.parameter_bytes_per_channel, self.port_bytes)

    def _output(self, pixels: int, flags: Flags) -> tuple[int, int]:
        """Cycles to requantise, and accesses to write, a block of channels of `pixels` pixels."""
        products = 4 if flags.residual else 0 if flags.raw else 1
        requantise = ceil_div(products * pixels * self.width, self.requantisers)
        return requantise, pixels * ((4 if flags.raw else 1) + flags.residual)

    def _drain(self, requantise: int, write: int) -> int:
        return self.drain_cycles + max(requantise, write)


def along_pixels(figures: Figures, plane: Plane, patch: Patch, *, nibbles: bool = False) -> bool:
    """True if the wide axis of the array is faster along pixels than along channels."""
    cycles = partial(figures.convolution, plane.pixels, plane.channels, patch, flags=Flags(nibbles=nibbles))
    return cycles(along_pixels=True) < cycles(along_pixels=False)


def patch_of(net: Net, op: Op) -> Patch:
    """The patch of a convolution, a dense layer, or sums."""
    window, channels = window_of(net, op), net.tensor(op.inputs[0]).shape[-1]
    summed = depth_of(net, op) // window.taps
    return Patch.of(window, summed, dense=summed == channels)


def cycles_of(net: Net, op: Op, plane: Plane, figures: Figures, *, nibbles: bool = False) -> int:
    """Cycles of the command for a plane of the op's output. `nibbles`: the weights are stored in 4 bits."""
    main, residual = op.parts[0], len(op.parts) > 1
    kind, window = main.kind, window_of(net, main)
    if kind in ADDITIONS:
        return figures.addition(plane, by_pixel=any(plane_of(net, main, name).width == 1 for name in main.inputs))
    if kind in ("depthwise_conv2d", "mean"):
        return figures.depthwise(plane, window, Flags(residual=residual, nibbles=nibbles))
    if kind in ("average_pool", "max_pool"):
        return figures.pool(plane.pixels, plane.channels, window.taps)
    patch = patch_of(net, main)
    choice = along_pixels(figures, plane, patch, nibbles=nibbles)
    flags = Flags(raw=kind == "sums", residual=residual, nibbles=nibbles)
    return figures.convolution(plane.pixels, plane.channels, patch, along_pixels=choice, flags=flags)
