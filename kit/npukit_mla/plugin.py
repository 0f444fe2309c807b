"""The array's plug-in: supported ops, ways to compute an op, costs, and commands.

`boards/spinnaker2.toml` beside this file has the chip's published figures. Sums have 24 bits. The weights
must prove 24 bits sufficient: the array may sum part of a kernel line at a time, and the core adds the parts.
Results are rounded like TensorFlow Lite's by the core. If all factors are a single power of two and clamping keeps
nothing below 0, the array's shift gives the same results, with biases that include the rounding (`shifted.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from pathlib import Path

import numpy as np

from npukit.accel import interface
from npukit.accel.filters import rows_and_biases
from npukit.accel.geometry import Plane, window_of
from npukit.board.board import AcceleratorSlot, Board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Conv2d, Dense, Sums, Total
from npukit.net.requantize import quantization
from npukit.net.tensor import Quantization, Tensor

from .driver_shape import LANES, WIDTH, DriverShape, Figures, padded
from .outcome import Outcome, Parts, Results, addition_words
from .shifted import Shift, shift_of

HERE = Path(__file__).resolve().parent
PRODUCTS, CONVOLUTION = "products", "convolution"
LINES, WINDOWS, SHIFTED, PLANES = "LINES", "WINDOWS", "SHIFTED", "PLANES"
"""Names of `enum mla_kind`. Products of a tile are of lines or of windows, whichever takes fewer cycles."""
CHANNEL_BYTES, COMMAND_BYTES = 12, 120
MOST_INPUT = 49152
"""Largest input of a convolution in bytes, since each PE makes planes of all. Larger inputs become products."""
FILES = ("mla.c", "mla_lines.c", "mla_windows.c", "mla_planes.c", "mla_requantise.c", "mla_emulated.c")


def power_of_two(tensor: Tensor, values: np.ndarray | None) -> Tensor:
    """The tensor with zero point 0 and a power of two as its only scale: the quantiser for this array."""
    del values
    given = tensor.quantization
    assert given is not None
    pairs = zip(given.scales, given.zero_points, strict=True)
    largest = max(scale * max(128 + zero, 127 - zero) for scale, zero in pairs)
    return replace(tensor, quantization=Quantization((2.0 ** ceil(log2(largest / 127)),), (0,)))


@dataclass(frozen=True)
class ProvenSums:
    """Facts of an op's sums, from weights, biases and factors."""

    weights: np.ndarray
    bias: np.ndarray | None
    bits: int
    """Bits of a whole sum without bias."""
    part: int
    """Largest part of a kernel line in bytes whose sums fit into the array's; 0 if no part fits."""
    outcome: Outcome
    fit: bool
    """True if the core can requantise the sums in 32 bits."""
    shift: Shift | None
    """The array's shift and biases, or None if the core requantises."""

    @classmethod
    def of(cls, net: Net, parts: Parts, held: int) -> ProvenSums:
        main = parts.main
        rows, biases = rows_and_biases(net, main)
        sizes, lines = np.abs(rows.astype(np.int64)) * 128, window_of(net, main).kernel[0]
        most = sizes.sum(1)
        return cls(
            net.constants[main.inputs[1]],
            net.constant(main, 2),
            int(most.max()).bit_length() + 1,
            _part(sizes.reshape(len(rows) * lines, -1), held),
            *parts.outcome(net, most),
            None if isinstance(main.attributes, Sums) else shift_of(net, main, biases, most),
        )


def _part(lines: np.ndarray, held: int) -> int:
    """Bytes of a line, halved until the sums of the products have at most `held` bits; 0 if none fits."""
    part = lines.shape[1]
    while part % WIDTH == 0:
        sums = np.add.reduceat(lines, np.arange(0, lines.shape[1], part), axis=1)
        if int(sums.max()).bit_length() < held:
            return part
        part = padded(part // 2, WIDTH) if part > WIDTH else 1
    return 0


class Mla:
    """Convolutions of a single group, dense layers, and partial sums of either."""

    name = "mla"
    version = "2"
    commands: interface.CommandFormat | None = interface.CommandFormat(
        struct="mla_command",
        next_field="next",
        tag_field="tag",
        align=4,
        bytes=COMMAND_BYTES,
        run="mla_run",
        header="mla.h",
    )
    abilities = interface.Abilities(patterns=(("conv2d", "add"), ("sums", "total")), products_per_cycle=WIDTH * LANES)
    passes = interface.OwnPasses(quantizer=power_of_two)
    model: Path | None = HERE / "firmware" / "mla_model.c"

    def __init__(self, slot: AcceleratorSlot) -> None:
        self.figures = Figures(**slot.figures)
        self._known: dict[str, ProvenSums] = {}

    def refusal(self, net: Net, op: Op) -> str | None:
        parts = Parts.of(op)
        main, output = parts.main, net.tensor(op.output)
        if not isinstance(main.attributes, Conv2d | Dense | Sums):
            return f"the array has products of matrices and convolutions, no {main.kind}"
        if main.inputs[1] not in net.constants:
            return "the weights are not constant"
        made = "int32" if isinstance(parts.last.attributes, Sums) else "int8"
        if any(net.tensor(name).dtype != "int8" for name in main.inputs[:2]) or output.dtype != made:
            return f"the driver takes int8 and gives {made}"
        if len(output.shape) == 4 and output.shape[0] != 1:
            return f"a batch of {output.shape[0]}: the driver takes one"
        groups = net.tensor(main.inputs[0]).shape[-1] // net.tensor(main.inputs[1]).shape[-1]
        if isinstance(main.attributes, Sums):
            groups = main.attributes.groups
        if groups != 1:
            return f"{groups} groups: the array has one"
        if refused := parts.refusal(net):
            return refused
        sums = self._sums(net, op)
        if not sums.fit:
            return "its results are out of what the core requantises in 32 bits"
        if not any(self._products(net, op, self.shape(net, op, Box.whole(net.tensor(op.output).shape)))):
            return f"its sums may need {sums.bits} bits, the array has {self.figures.accumulator_bits}"
        return None

    def _sums(self, net: Net, op: Op) -> ProvenSums:
        """The facts of an op's sums, cached because the planner requests many costs."""
        main, known = op.parts[0], self._known.get(op.name)
        weights, bias = net.constants[main.inputs[1]], net.constant(main, 2)
        if known is None or known.weights is not weights or known.bias is not bias:
            known = self._known[op.name] = ProvenSums.of(net, Parts.of(op), self.figures.accumulator_bits)
        return known

    def shape(self, net: Net, op: Op, output: Box) -> DriverShape:
        """A box of the op's output as the driver computes it."""
        return DriverShape.of(net, op.parts[0], output, self._sums(net, op).part)

    def choices(self, net: Net, op: Op) -> list[interface.Choice]:
        """Products of matrices, and the array's convolution if it takes the op."""
        if op.parts != (op,):
            return []
        shape = self.shape(net, op, Box.whole(net.tensor(op.output).shape))
        window, short = shape.window, self._sums(net, op).bits <= self.figures.accumulator_bits
        plain = window.taps > 1 and {*window.strides, *window.dilation} == {1} and short and not shape.apart
        own = plain and net.tensor(op.inputs[0]).bytes <= MOST_INPUT
        return [interface.Choice(PRODUCTS), interface.Choice(CONVOLUTION)] if own else []

    def _products(self, net: Net, op: Op, shape: DriverShape) -> Iterator[tuple[int, str]]:
        """The cycles and the way of each kind of products that can compute a tile."""
        sums, held = self._sums(net, op), self.figures.accumulator_bits
        if shape.may_be_lines:
            zero = quantization(net, op.inputs[0]).zero_point
            yield shape.lines(self.figures, sums.outcome, zero), LINES
        if sums.bits <= held:
            yield shape.windows(self.figures, sums.outcome), WINDOWS
        if sums.shift and sums.shift.bits <= held and not sums.outcome.adds:
            yield shape.shifted(self.figures, sums.shift.slots), SHIFTED

    def _fastest(self, net: Net, op: Op, shape: DriverShape) -> tuple[int, str]:
        """The cycles of a tile in the fastest way, and the way."""
        if op.choice == CONVOLUTION:
            return shape.convolutions(self.figures, self._sums(net, op).outcome), PLANES
        return min(self._products(net, op, shape))

    def cost(self, net: Net, op: Op, output: Box) -> interface.Cost:
        shape = self.shape(net, op, output)
        (cycles, way), channels = self._fastest(net, op, shape), shape.plane.channels
        outcome = self._sums(net, op).outcome
        beside = CHANNEL_BYTES * channels + COMMAND_BYTES + 4 * outcome.words
        if way == PLANES:
            weights = padded(channels, LANES) * shape.depth
            return interface.Cost(cycles, weights + beside, shape.scratch_of_planes, constants_key="fours")
        slots = self._slots(net, op, way)
        weights = padded(channels, WIDTH) * padded(shape.depth + slots, WIDTH)
        scratch = shape.scratch_of_lines if way == LINES else shape.scratch_of_windows(slots)
        key = "sixteens with biases" if way == SHIFTED else "sixteens"
        return interface.Cost(cycles, weights + beside, scratch, aliases=outcome.aliases, constants_key=key)

    def _slots(self, net: Net, op: Op, way: str) -> int:
        """Bytes behind each window for biases."""
        shift = self._sums(net, op).shift
        return shift.slots if shift and way == SHIFTED else 0

    def lower(self, tile: interface.Tile) -> interface.Lowered:
        assert tile.scratch is not None
        net, parts = tile.net, Parts.of(tile.op)
        shape = self.shape(net, tile.op, tile.output.box)
        _, way = self._fastest(net, tile.op, shape)
        sums, chosen = self._sums(net, tile.op), slice(tile.output.box.start[-1], tile.output.box.stop[-1])
        rows, shift = rows_and_biases(net, parts.main)[0][chosen], sums.shift
        slots = self._slots(net, tile.op, way)
        if shift and slots:
            rows = np.concatenate([rows, shift.rows(chosen.start, chosen.stop)], axis=1)
        weights, form = _in_sixteens(rows), "[channel / 16][product][16]"
        if way == PLANES:
            weights, form = _in_fours(rows, tile), "[channel / 4][input channel][y][x][4]"
        words, comment = parts.channel_words(net)[chosen], "of each channel: bias, multiplier, shift"
        constants = [
            interface.ConstantArray(f"{tile.name}_weights", weights, 16, f"weights {form}"),
            interface.ConstantArray(f"{tile.name}_channels", words, 4, comment),
        ]
        if parts.addition:
            words, comment = addition_words(net, parts.addition, parts.main.output), "rescaling of the addition"
            constants.append(interface.ConstantArray(f"{tile.name}_addition", words, 4, comment))
        fields: tuple[tuple[str, interface.Field], ...] = (
            ("kind", f"MLA_{way}"),
            ("input", tile.inputs[0].address),
            ("weights", interface.Address(constants[0].symbol)),
            ("channels", interface.Address(constants[1].symbol)),
            ("scratch", tile.scratch),
            ("output", tile.output.address),
            *_sizes(tile, parts, shape, way),
            ("slots", slots),
            ("right", shift.right if shift and slots else 0),
            ("plain", int(sums.outcome.results is Results.PLAIN)),
            ("raw", int(sums.outcome.results is Results.RAW)),
            *_more(tile, constants[2:]),
        )
        return interface.Lowered(tuple(constants), interface.Commands((interface.Struct(fields),)))

    def sources(self, board: Board) -> tuple[Path, ...]:
        slot = board.accelerator_named(self.name)
        files = FILES if slot and slot.base is not None else ("mla_on_core.c",)
        return tuple(HERE / "firmware" / each for each in files)


_MORE = ("more", "more_row_stride", "more_pixel_stride")


def _more(tile: interface.Tile, addition: Sequence[interface.ConstantArray]) -> Iterator[tuple[str, interface.Field]]:
    """The fields of addends."""
    for more in tile.inputs[1:]:
        yield from zip(_MORE, (more.address, more.row_stride, more.pixel_stride), strict=True)
    yield from (("addition", interface.Address(each.symbol)) for each in addition)


def _in_sixteens(weights: np.ndarray) -> np.ndarray:
    """[channel / 16][product, padded to 16][16]."""
    room = np.zeros((padded(weights.shape[0], WIDTH), padded(weights.shape[1], WIDTH)), np.int8)
    room[: weights.shape[0], : weights.shape[1]] = weights
    return np.ascontiguousarray(room.reshape(-1, WIDTH, room.shape[1]).transpose(0, 2, 1))


def _in_fours(weights: np.ndarray, tile: interface.Tile) -> np.ndarray:
    """[channel / 4][input channel][y][x][4]."""
    taps, channels = window_of(tile.net, tile.op).taps, tile.net.tensor(tile.op.inputs[0]).shape[-1]
    room = np.zeros((padded(len(weights), LANES), taps, channels), np.int8)
    room[: len(weights)] = weights.reshape(len(weights), taps, channels)
    return np.ascontiguousarray(room.reshape(-1, LANES, taps, channels).transpose(0, 3, 2, 1))


def _sizes(tile: interface.Tile, parts: Parts, shape: DriverShape, way: str) -> Iterator[tuple[str, int]]:
    """The numbers of `struct mla_command`."""
    source, finisher = tile.inputs[0], parts.total or parts.main
    attributes = finisher.of(Conv2d, Dense, Sums, Total)
    for name, operand in (("input", source), ("output", tile.output)):
        plane = Plane.of(operand.box)
        yield f"{name}_height", plane.height
        yield f"{name}_width", plane.width
        yield f"{name}_channels", plane.channels
        yield f"{name}_row_stride", operand.row_stride
        yield f"{name}_pixel_stride", operand.pixel_stride
    window = shape.window
    top, left = window.padding_of(tile.output.box, source.box)
    for name, (y, x) in (("stride", window.strides), ("dilation", window.dilation)):
        yield from ((f"{name}_y", y), (f"{name}_x", x))
    yield from (("kernel_height", window.kernel[0]), ("kernel_width", window.kernel[1]))
    yield from (("pad_top", top), ("pad_left", left), ("pad_right", shape.sides[1]))
    yield "input_zero", quantization(tile.net, tile.op.inputs[0]).zero_point
    raw = isinstance(attributes, Sums)
    yield "output_zero", 0 if raw else quantization(tile.net, finisher.output).zero_point
    yield from zip(("clamp_min", "clamp_max"), (0, 0) if raw else attributes.clamp, strict=True)
    yield "pixels", {LINES: shape.run, PLANES: shape.rows_of_planes}.get(way, shape.at_once)
    yield "columns", shape.columns
    yield "part", shape.part
