"""The array's plug-in: what it takes, in which of its two ways, what that costs, and the call that does it.

What is public of the chip is in `boards/spinnaker2.toml`. Sums have 24 bits, so that an op is taken only if its weights
prove that they suffice. The array can shift and truncate; results are rounded as TensorFlow Lite rounds them, so that
the core requantises. `power_of_two` is the quantiser of networks whose owner has the array shift instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, gcd, log2
from pathlib import Path

import numpy as np

from npukit.accel.filters import rows_and_biases, tile_filter
from npukit.accel.geometry import Plane, Window, depth_of, window_of
from npukit.accel.interface import (
    Abilities,
    Address,
    Call,
    Choice,
    CommandFormat,
    ConstantArray,
    Cost,
    Lowered,
    OwnPasses,
    Tile,
)
from npukit.accel.mla.cycles import (
    CALL,
    EDGE,
    LANES,
    PLANE_BYTE,
    PLANE_PIXEL,
    PLANE_ROOM,
    ROW,
    WIDTH,
    Figures,
    blocks,
    gathered,
    overlapped,
    padded,
    requantised,
)
from npukit.board.board import AcceleratorSlot, Board
from npukit.data import data_folder
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense
from npukit.net.requantize import quantization, requantization
from npukit.net.tensor import Quantization, Tensor

PRODUCTS, CONVOLUTION = "products", "convolution"
CHANNEL_WORDS, LAYER_WORDS = 3, 25
MOST_PIXELS = 16
MOST_RIGHT = 20
"""Bits of a shift with which the zero point, shifted, keeps clear of the highest bit."""
ROOM = 8192
"""Bytes for the rows of a pass's pixels."""
ROOM_OF_PLANES, MOST_INPUT = 24576, 49152
"""Bytes for the planes of a convolution, if they hold what one row of its output needs; and of a whole op's input, of
which each PE makes planes that computes some of its channels: of larger ones products are better shared."""


def power_of_two(tensor: Tensor, values: np.ndarray | None) -> Tensor:
    """The tensor around zero, with one scale that is a power of two: the quantiser of networks for this array."""
    del values
    given = tensor.quantization
    assert given is not None
    pairs = zip(given.scales, given.zero_points, strict=True)
    largest = max(scale * max(128 + zero, 127 - zero) for scale, zero in pairs)
    return replace(tensor, quantization=Quantization((2.0 ** ceil(log2(largest / 127)),), (0,)))


@dataclass(frozen=True)
class DriverShape:
    """A box of an op's output as the driver sees it."""

    plane: Plane
    window: Window
    channels: int
    depth: int
    cut_lines: int
    """Lines of the windows of the box that lie outside of the input."""

    @classmethod
    def of(cls, net: Net, op: Op, output: Box) -> DriverShape:
        window, shape = window_of(net, op), net.tensor(op.inputs[0]).shape
        cut = 0
        if len(shape) == 4:
            first = output.start[1] * window.strides[0] - window.padding[0]
            last = (output.stop[1] - 1) * window.strides[0] - window.padding[0] + window.kernel[0]
            cut = max(-first, 0) + max(last - shape[1], 0)
        return cls(Plane.of(output), window, shape[-1], depth_of(net, op), cut)

    @property
    def at_once(self) -> int:
        """Pixels of a product."""
        room = ROOM // padded(self.depth, WIDTH) // LANES * LANES
        return min(self.plane.pixels, MOST_PIXELS, max(room, LANES))

    @property
    def in_place(self) -> bool:
        """True if pixels can be rows of a product where they lie."""
        window = self.window
        return window.taps == 1 and window.strides == (1, 1) and not any(window.padding) and self.channels % WIDTH == 0

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
    def lines(self) -> int:
        """Lines of the input of which there are planes at a time."""
        return self.rows_of_planes + self.window.kernel[0] - 1

    @property
    def scratch_of_products(self) -> int:
        return 2 * self.at_once * (padded(self.depth, WIDTH) + 4 * padded(self.plane.channels, WIDTH))

    @property
    def scratch_of_convolution(self) -> int:
        """Planes, and the sums of a row twice."""
        return (
            self.row_stride * self.lines * self.channels + 2 * 4 * padded(self.plane.width, WIDTH) * self.plane.channels
        )

    def products(self, figures: Figures, *, plain: bool) -> int:
        """Cycles as products of matrices."""
        pixels, channels, passes = self.plane.pixels, self.plane.channels, blocks(self.plane.pixels, self.at_once)
        finish = requantised(passes, channels, pixels * channels, plain=plain) + passes * CALL
        array = figures.product(self.at_once, self.depth, channels)
        return overlapped(passes, array, 0 if self.in_place else self._gathered, finish)

    @property
    def _gathered(self) -> float:
        (height, width), padding = self.window.kernel, self.window.padding
        copies = 1 if self.window.taps == 1 else 2
        aligned = (gcd(self.channels, 4) / 4) ** copies
        cut_off = self.plane.height * sum(each > 0 for each in padding[1::2]) * height * width
        return gathered(self.plane.pixels, height, width * self.channels, aligned) + cut_off * EDGE

    def convolution(self, figures: Figures, *, plain: bool) -> int:
        """Cycles as a convolution, row by row."""
        plane, times = self.plane, blocks(self.plane.height, self.rows_of_planes)
        array = figures.convolution(1, plane.width, plane.channels, self.depth)
        finish = requantised(plane.height, plane.channels, plane.pixels * plane.channels, plain=plain)
        pixels = (times * self.lines - self.cut_lines) * plane.width
        room = times * self.row_stride * self.lines * self.channels * PLANE_ROOM
        planes = pixels * (self.channels * PLANE_BYTE + PLANE_PIXEL) + room
        return overlapped(plane.height, array, 0, finish + plane.height * ROW) + round(planes)


class Mla:
    """Convolutions of one group, and dense layers."""

    name = "mla"
    version = "1"
    commands: CommandFormat | None = None
    abilities = Abilities()
    passes = OwnPasses(quantizer=power_of_two)
    model: Path | None = data_folder("firmware") / "mla" / "mla_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.figures = Figures(**slot.figures)

    def refusal(self, net: Net, op: Op) -> str | None:
        if not isinstance(op.attributes, Conv2d | Dense):
            return f"the array has products of matrices and convolutions, no {op.kind}"
        if op.inputs[1] not in net.constants:
            return "the weights are not constant"
        if any(net.tensor(name).dtype != "int8" for name in (*op.inputs[:2], op.output)):
            return "the driver takes int8 and gives int8"
        if isinstance(op.attributes, Conv2d):
            if (batch := net.tensor(op.output).shape[0]) != 1:
                return f"a batch of {batch}: the driver takes one"
            groups = net.tensor(op.inputs[0]).shape[-1] // net.tensor(op.inputs[1]).shape[-1]
            if groups != 1:
                return f"{groups} groups: the array has one"
        return self._too_large(net, op)

    def _too_large(self, net: Net, op: Op) -> str | None:
        weights, biases = rows_and_biases(net, op)
        wide, factors = weights.astype(np.int64), requantization(net, op)
        most = np.abs(wide).sum(1) * 128
        bits, held = int(most.max()).bit_length() + 1, self.figures.accumulator_bits
        if bits > held:
            return f"its sums may need {bits} bits, the array has {held}"
        left = np.maximum(factors.shifts, 0).astype(np.int64)
        fits = np.all((most + np.abs(biases)) << left < 1 << 30) and np.all(factors.shifts >= -MOST_RIGHT)
        return None if fits else "its results are out of what the core requantises in 32 bits"

    def choices(self, net: Net, op: Op) -> list[Choice]:
        """The two ways: products of matrices, and where the array has it a convolution of its own."""
        shape = DriverShape.of(net, op, Box.whole(net.tensor(op.output).shape))
        fits = net.tensor(op.inputs[0]).bytes <= MOST_INPUT
        plain = shape.window.taps > 1 and {*shape.window.strides, *shape.window.dilation} == {1}
        return [Choice(PRODUCTS), Choice(CONVOLUTION)] if plain and fits else []

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        shape, plain = DriverShape.of(net, op, output), _plain(net, op)
        words = 4 * (CHANNEL_WORDS * shape.plane.channels + LAYER_WORDS)
        if op.choice == CONVOLUTION:
            weights = padded(shape.plane.channels, LANES) * shape.depth
            return Cost(shape.convolution(self.figures, plain=plain), weights + words, shape.scratch_of_convolution)
        weights = padded(shape.plane.channels, WIDTH) * padded(shape.depth, WIDTH)
        return Cost(shape.products(self.figures, plain=plain), weights + words, shape.scratch_of_products)

    def lower(self, tile: Tile) -> Lowered:
        assert tile.scratch is not None
        rows, channels = tile_filter(tile)
        convolved = tile.op.choice == CONVOLUTION
        weights, form = (
            (_for_convolution(rows, tile), "[channel / 4][input channel][y][x][4]")
            if convolved
            else (_for_products(rows), "[channel / 16][product][16]")
        )
        constants = (
            ConstantArray(f"{tile.name}_weights", weights, 16, f"weights {form}"),
            ConstantArray(f"{tile.name}_channels", channels, 4, "of each channel: bias, multiplier, shift"),
            ConstantArray(f"{tile.name}_layer", _layer(tile, convolved), 4, "sizes, strides and limits"),
        )
        places = (tile.inputs[0].address, *(Address(c.symbol) for c in constants), tile.scratch, tile.output.address)
        return Lowered(constants, Call("mla_convolution" if convolved else "mla_products", places))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        files = ("mla.c", "mla_emulated.c") if slot and slot.base is not None else ("mla_on_core.c",)
        return tuple(data_folder("firmware") / "mla" / each for each in files)


def _for_products(weights: np.ndarray) -> np.ndarray:
    """[channel / 16][product, padded to 16][16]."""
    room = np.zeros((padded(weights.shape[0], WIDTH), padded(weights.shape[1], WIDTH)), np.int8)
    room[: weights.shape[0], : weights.shape[1]] = weights
    return np.ascontiguousarray(room.reshape(-1, WIDTH, room.shape[1]).transpose(0, 2, 1))


def _for_convolution(weights: np.ndarray, tile: Tile) -> np.ndarray:
    """[channel / 4][input channel][y][x][4]."""
    taps, channels = window_of(tile.net, tile.op).taps, tile.net.tensor(tile.op.inputs[0]).shape[-1]
    room = np.zeros((padded(len(weights), LANES), taps, channels), np.int8)
    room[: len(weights)] = weights.reshape(len(weights), taps, channels)
    return np.ascontiguousarray(room.reshape(-1, LANES, taps, channels).transpose(0, 3, 2, 1))


def _layer(tile: Tile, convolved: bool) -> np.ndarray:
    """The words of `enum mla_layer`."""
    shape, source, attributes = DriverShape.of(tile.net, tile.op, tile.output.box), tile.inputs[0], tile.op.attributes
    assert isinstance(attributes, Conv2d | Dense)
    sizes: list[int] = []
    for operand in (source, tile.output):
        plane = Plane.of(operand.box)
        sizes += [plane.height, plane.width, plane.channels, operand.row_stride, operand.pixel_stride]
    window = shape.window
    zeros = (quantization(tile.net, name).zero_point for name in (tile.op.inputs[0], tile.op.output))
    moves = (*window.kernel, *window.strides, *window.dilation, *window.padding_of(tile.output.box, source.box))
    at_once = (shape.rows_of_planes, 0) if convolved else (shape.at_once, int(shape.in_place and _dense(tile)))
    return np.array([*sizes, *moves, *zeros, *attributes.clamp, *at_once, int(_plain(tile.net, tile.op))], np.int32)


def _plain(net: Net, op: Op) -> bool:
    """True if every sum is shifted to the right, and kept as an int8 can be: the short way of the driver."""
    assert isinstance(op.attributes, Conv2d | Dense)
    return op.attributes.clamp == (-128, 127) and bool(np.all(requantization(net, op).shifts < 0))


def _dense(tile: Tile) -> bool:
    """True if the pixels of the input follow each other at multiples of 16 bytes."""
    source = tile.inputs[0]
    plane = Plane.of(source.box)
    follow = plane.height == 1 or source.row_stride == plane.width * source.pixel_stride
    return follow and source.pixel_stride % WIDTH == 0 and source.address.offset % WIDTH == 0
