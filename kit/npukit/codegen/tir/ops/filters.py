"""Convolution, depthwise convolution and dense layers. Each loaded input serves a few output channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from npukit.accel.core_filters import LANES, PRODUCTS_LANES, zero_is_in_bias
from npukit.accel.groups import groups_of
from npukit.accel.interface import Tile
from npukit.codegen.tir.door import Expr, Local, Pointed, call, cast, do, let, loop, quotient, select
from npukit.codegen.tir.ops.finish import Finish, Kept, Sink, wide
from npukit.codegen.tir.ops.fixed_point import clamp, requantize, scale_down
from npukit.codegen.tir.ops.strided import Layout, each_pixel
from npukit.codegen.tir.ops.window import Sweep, Taps, inside, sweeps_of
from npukit.net.ops import Total
from npukit.net.requantize import quantization

PIXELS = 2
"""Pixels that share each loaded weight: with their sums as many as the core's registers hold."""
_UNROLLED = 2

Block = Callable[[list[Expr]], None]


def conv2d(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    _convolution(tile, source, weights, output, Finish(tile, tuple(constants)))


def dense(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    _products(tile, source, weights, output, Finish(tile, tuple(constants)))


def sums(tile: Tile, source: Pointed, *rest: Pointed) -> None:
    """Sums over the channels of the tile's input, added to the partial sums before, if there are any."""
    *before, weights, output = rest
    windows = len(tile.net.tensor(tile.op.inputs[1]).shape) == 4
    for kept, operand in zip(before, tile.inputs[1:], strict=True):
        given, made = Layout.of(operand), Layout.of(tile.output)
        with each_pixel(made) as place, loop("c", 0, made.channels) as c:
            output[made.index(*place, c)] = kept[given.index(*place, c)]
    (_convolution if windows else _products)(tile, source, weights, output, Kept(adds=bool(before)))


def total(tile: Tile, *arrays: Pointed) -> None:
    *parts, bias, multipliers, shifts, zero, output = arrays
    attributes = tile.op.of(Total)
    given, made = [Layout.of(operand) for operand in tile.inputs], Layout.of(tile.output)
    only_right = bool((tile.net.constants[tile.op.inputs[-1]] <= 0).all())
    scale = (lambda value, factor, shift: scale_down(value, factor, 0 - shift)) if only_right else requantize
    with each_pixel(made) as place, loop("c", 0, made.channels) as c:
        whole = let("whole", bias[c])
        for part, layout in zip(parts, given, strict=True):
            whole = let("whole", whole + part[layout.index(*place, c)])
        scaled = scale(whole, multipliers[c], shifts[c]) + zero[0]
        output[made.index(*place, c)] = cast("int8", clamp(scaled, *attributes.clamp))


def _convolution(tile: Tile, source: Pointed, weights: Pointed, output: Pointed, finish: Sink) -> None:
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    _, height, width, depth = tile.net.tensor(tile.op.inputs[1]).shape
    sweep_y, sweep_x = sweeps_of(tile)
    runs_on = given.pixel_stride == depth and sweep_x.dilation == 1
    lanes = _lanes(tile, weights)
    products = _Products(source, weights, zero_of(tile), inputs_in_turn=lanes == PRODUCTS_LANES <= made.channels)
    with loop("n", 0, made.images) as n, loop("y", 0, made.rows) as y:
        rows = sweep_y.range_at(y)
        for x, columns, pixels in _pixels_of_a_row(sweep_x, 1 if products.inputs_in_turn else PIXELS):
            window, count = (rows, columns.whole if runs_on else columns), columns.count * depth if runs_on else depth
            products.begin()
            if products.inputs_in_turn:
                with inside(*window) as (_, _, row, column):
                    products.add_inputs(let("pixel", given.index(n, row, column)), count)
            for channels in _blocks(made.channels, lanes):
                sums = [products.start(finish, channels) for _ in range(pixels)]
                first = let("first", channels[0] * (height * width * depth))
                with inside(*window) as (ky, kx, row, column):
                    origin = given.index(n, row, column, _first_channel(tile, channels[0]))
                    places = [let("pixel", origin + p * sweep_x.stride * given.pixel_stride) for p in range(pixels)]
                    products.add(sums, places, first + (ky * width + kx) * depth * len(channels), count)
                for p, of_pixel in enumerate(sums):
                    products.finish(of_pixel)
                    finish.store(output, made.index(n, y, x + p), channels, of_pixel)


class _Products:
    """Sums of products: each input minus the zero point, times a weight. With eight lanes the assembly function
    `products` computes them. Its weights have an offset of 128, so 128 times the sum of the inputs is subtracted at the
    end."""

    def __init__(self, source: Pointed, weights: Pointed, zero: int, *, inputs_in_turn: bool) -> None:
        self._source, self._weights, self._zero = source, weights, zero
        self._weight_zero = 128 if weights.dtype == "uint8" else 0
        self.inputs_in_turn = inputs_in_turn
        self._inputs: Local | None = None

    def begin(self) -> None:
        """Begin a pixel, or several."""
        if self.inputs_in_turn:
            self._inputs = Local("inputs", "int32", 0)

    def add_inputs(self, place: Expr, count: Expr) -> None:
        assert self._inputs
        for i in _each(count):
            self._inputs.set(self._inputs.value + wide(self._source[place + i], self._zero))

    def start(self, finish: Sink, channels: Sequence[Expr]) -> list[Local]:
        """The initial sums of a pixel."""
        if len(channels) == PRODUCTS_LANES:
            return Local.in_a_row("sums", "int32", [*finish.initial(channels), 0 - self._zero])[:-1]
        return [Local("sum", "int32", value) for value in finish.initial(channels)]

    def add(self, sums: Sequence[Sequence[Local]], places: Sequence[Expr], tap: Expr, count: Expr) -> None:
        """Add the products of each pixel's run of inputs and of the weights from `tap` on."""
        lanes = len(sums[0])
        if lanes == PRODUCTS_LANES:
            do(call("products", sums[0][0].address, self._source.address(places[0]), self._weights.address(tap), count))
            return
        tap = let("tap", tap)
        for i in _each(count):
            values = [let("value", wide(self._source[place + i], self._zero)) for place in places]
            for lane in range(lanes):
                weight = let("weight", wide(self._weights[tap + i * lanes + lane], self._weight_zero))
                for of_pixel, value in zip(sums, values, strict=True):
                    of_pixel[lane].set(of_pixel[lane].value + value * weight)

    def finish(self, sums: Sequence[Local]) -> None:
        if len(sums) == PRODUCTS_LANES:
            assert self._inputs
            for each in sums:
                each.set(each.value - self._inputs.value * self._weight_zero)


def depthwise_conv2d(tile: Tile, source: Pointed, weights: Pointed, *rest: Pointed) -> None:
    *constants, output = rest
    finish, zero = Finish(tile, tuple(constants)), quantization(tile.net, tile.op.inputs[0]).zero_point
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    width = tile.net.tensor(tile.op.inputs[1]).shape[2]
    sweep_y, sweep_x = sweeps_of(tile)
    with each_pixel(made) as (n, y, x):
        rows, columns = sweep_y.range_at(y), sweep_x.range_at(x)
        for channels in _blocks(made.channels, LANES):
            sums = [Local("sum", "int32", value) for value in finish.initial(channels)]
            with inside(rows, columns) as (ky, kx, row, column):
                pixel = let("pixel", given.index(n, row, column))
                tap = let("tap", (ky * width + kx) * made.channels)
                values = [wide(source[pixel + _source_channel(tile, c)], zero) for c in channels]
                for total, value, c in zip(sums, values, channels, strict=True):
                    total.set(total.value + value * wide(weights[tap + c]))
            finish.store(output, made.index(n, y, x), channels, sums)


def _products(tile: Tile, source: Pointed, weights: Pointed, output: Pointed, finish: Sink) -> None:
    given, made = Layout.of(tile.inputs[0]), Layout.of(tile.output)
    depth, lanes = tile.net.tensor(tile.op.inputs[1]).shape[1], _lanes(tile, weights)
    products = _Products(source, weights, zero_of(tile), inputs_in_turn=lanes == PRODUCTS_LANES <= made.channels)
    with each_pixel(made) as place:
        row = let("row", given.index(*place))
        products.begin()
        if products.inputs_in_turn:
            products.add_inputs(row, depth)
        for channels in _blocks(made.channels, lanes):
            sums = products.start(finish, channels)
            products.add([sums], [row], channels[0] * depth, depth)
            products.finish(sums)
            finish.store(output, made.index(*place), channels, sums)


def zero_of(tile: Tile) -> int:
    """The zero point to subtract from each input, or 0 if the bias includes it."""
    return 0 if zero_is_in_bias(tile.net, tile.op) else quantization(tile.net, tile.op.inputs[0]).zero_point


def _lanes(tile: Tile, weights: Pointed) -> int:
    """Output channels at a time. With groups one at a time, as the inputs differ."""
    if groups_of(tile.net, tile.op) > 1:
        return 1
    return PRODUCTS_LANES if weights.dtype == "uint8" else LANES


def _pixels_of_a_row(sweep: Sweep, at_once: int) -> Iterator[tuple[Expr, Taps, int]]:
    """Loops over pairs of pixels whose windows lie inside, then over the other pixels. Yields the first pixel, its
    taps, and the number of pixels."""
    first, end = sweep.inside
    pairs = (end - first) // PIXELS if at_once > 1 else 0
    if pairs:
        with loop("pair", 0, pairs) as pair:
            x = let("x", first + pair * PIXELS)
            yield x, sweep.whole_range_at(x), PIXELS
    if rest := sweep.outputs - pairs * PIXELS:
        with loop("single", 0, rest) as single:
            x = let("x", select(single < first, single, single + pairs * PIXELS) if pairs else single)
            yield x, sweep.range_at(x), 1


def _each(count: Expr) -> Iterator[Expr]:
    """A loop with `_UNROLLED` turns at once if their number is known, then the remaining turns."""
    at_once = _UNROLLED if isinstance(count, int) else 1
    rounds = count // at_once if isinstance(count, int) else count
    with loop("i", 0, rounds) as i:
        for turn in range(at_once):
            yield i * at_once + turn
    if isinstance(count, int):
        yield from range(rounds * at_once, count)


def _blocks(channels: int, lanes: int) -> Iterator[list[Expr]]:
    """Loops over blocks of channels, then over the remaining channels. Yields the channels of each turn."""
    for start, stop, size in ((0, channels - channels % lanes, lanes), (channels - channels % lanes, channels, 1)):
        if stop > start:
            with loop("block", 0, (stop - start) // size) as block:
                yield [start + block * size + lane for lane in range(size)]


def _first_channel(tile: Tile, channel: Expr) -> Expr:
    """The first input channel of an output channel's group."""
    outputs, *_, depth = tile.net.tensor(tile.op.inputs[1]).shape
    groups = groups_of(tile.net, tile.op)
    if groups == 1:
        return 0
    group = quotient(channel + tile.output.box.start[3], outputs // groups)
    return group * depth - tile.inputs[0].box.start[3]


def _source_channel(tile: Tile, channel: Expr) -> Expr:
    multiplier = tile.net.tensor(tile.op.output).shape[3] // tile.net.tensor(tile.op.inputs[0]).shape[3]
    absolute = channel + tile.output.box.start[3]
    return (absolute if multiplier == 1 else quotient(absolute, multiplier)) - tile.inputs[0].box.start[3]


KERNELS = {"conv2d": conv2d, "dense": dense, "depthwise_conv2d": depthwise_conv2d, "sums": sums, "total": total}
