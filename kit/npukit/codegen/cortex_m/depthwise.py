"""Depthwise convolutions on channel planes, two rows of two outputs at a time, borders skipped instead of stored.

Planes hold values counted from the zero point, so that a tap outside the image is one product less. All weights of a
channel stay in registers while its plane is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from npukit.codegen.cortex_m.assembly import Assembly
from npukit.codegen.cortex_m.kernel import Constant, Kernel, Refusal, entry_costs, routine
from npukit.codegen.cortex_m.layer import INT8, DepthwiseLayer
from npukit.codegen.cortex_m.layout import Layout, Order
from npukit.codegen.cortex_m.ranges import accumulators
from npukit.codegen.cortex_m.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
    smallest_exponents,
)
from npukit.codegen.cortex_m.stream import packed
from npukit.codegen.cortex_m.taps import Weights, products, tap_under

KERNEL = (3, 3)
INPUT, OUTPUT = "r6", "r7"
ACCUMULATORS = ("r8", "r9", "r10", "r11")
FIRST, SECOND = "r12", "lr"
FRAME_MULTIPLIER = 0
FRAME_BIAS = 8
FRAME_ROWS_END = 12
FRAME_CONSTANTS = 16
FRAME_PLANE = 24
FRAME_COLUMNS_END = 32
FRAME_EXPONENT = 36
FRAME_BYTES = 44
_PUSHED_BYTES = 36
_LARGEST_WEIGHT = 32767
_REACH = 4095
_LOAD_PAIR_REACH = 1020
_COLUMN_ROUNDS = (2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class Tile:
    """Output rows from `row` computed together: their input rows, and the kernel row under each for each output row."""

    row: int
    height: int
    first_input: int
    taps: tuple[tuple[int | None, ...], ...]

    @property
    def pattern(self) -> tuple:
        return self.height, self.taps


@dataclass(frozen=True)
class Group:
    """Output columns from `column`, and the first input column loaded for them."""

    column: int
    width: int
    base: int
    taps: tuple[tuple[tuple[int | None, ...], ...], ...]
    """for each register loaded, for each output, the taps of its halves"""

    @property
    def pattern(self) -> tuple:
        return self.width, self.taps


@dataclass(frozen=True)
class Plan:
    """Everything the emitter needs to know."""

    channels: int
    row_step: int
    source: Layout
    target: Layout
    exponent: int | None
    """E of all channels, or None if each brings its own"""
    tiles: tuple[Tile, ...]
    groups: tuple[Group, ...]
    unrolled_groups: int

    @property
    def halfwords(self) -> bool:
        return self.source.order is Order.PLANES16

    @property
    def weight_registers(self) -> int:
        return 6 if self.halfwords else 5

    @property
    def constants_bytes(self) -> int:
        """Constants of one channel."""
        return 4 * (self.weight_registers + 3 + (self.exponent is None))


def depthwise(layer: DepthwiseLayer, source: Layout, target: Layout, sharing: int = 1) -> Kernel | Refusal:
    """The depthwise convolution from planes to another layout; `sharing` layers have its shape."""
    variant = f"depthwise {source.order.value} to {target.order.value}"
    reason = _refusal(layer, source, target)
    if reason:
        return Refusal(variant, reason)
    for exponents in (*common_exponents(layer.requantization), smallest_exponents(layer.requantization)):
        fast = fast_requantization(layer.requantization, exponents, unsigned=target.order is not Order.PIXELS)
        reason = overflow(fast, accumulators(layer).magnitude) or _weights_refusal(layer, fast)
        if not reason:
            return _fastest(layer, source, target, fast, variant, sharing)
    return Refusal(variant, str(reason))


def _refusal(layer: DepthwiseLayer, source: Layout, target: Layout) -> str | None:
    if source.order is Order.PIXELS:
        return "reads planes, not pixels"
    if layer.kernel != KERNEL:
        return f"a {layer.kernel[0]}x{layer.kernel[1]} kernel does not stay in registers"
    if layer.input_zero != INT8[0]:
        return f"planes need the zero point {INT8[0]}, it is {layer.input_zero}"
    if layer.requantization.zero_point != INT8[0]:
        return f"no register is left for the tie correction that the zero point {layer.requantization.zero_point} needs"
    if source.transposed != target.transposed:
        return "input and output are transposed differently"
    if max(layer.padding) >= KERNEL[0]:
        return f"a padding of {max(layer.padding)} reaches beyond the kernel"
    if 5 * max(source.row_stride, source.column_stride) > _REACH:
        return f"rows of {source.shape[1]} are too long for immediate offsets"
    return clamp_refusal(layer.requantization)


def _weights_refusal(layer: DepthwiseLayer, fast: FastRequantization) -> str | None:
    largest = np.abs(layer.weights.astype(np.int64)).max((0, 1)) << fast.prescale
    if largest.max() > _LARGEST_WEIGHT:
        return f"right shifts that differ by {int(np.ptp(fast.prescale))} push prescaled weights out of 16 bits"
    return None


def _fastest(
    layer: DepthwiseLayer, source: Layout, target: Layout, fast: FastRequantization, variant: str, sharing: int
) -> Kernel:
    layer = _along_planes(layer, source)
    tiles, groups = tuple(_tiles(layer)), tuple(_groups(layer, source))
    plans = [
        Plan(layer.input_shape[2], layer.strides[0], source, target, fast.exponent, tiles, groups, rounds)
        for rounds in (*_COLUMN_ROUNDS, len(groups))
    ]
    emitted = [(plan, _emit(plan)) for plan in plans]
    plan, body = min(emitted, key=lambda e: e[1].cost(sharing))
    instructions, cycles = entry_costs(body, constants=True)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"exponents up to {fast.exponents.max()}, zero points {INT8[0]}",
        routine=routine(body),
        constants=(Constant(f"{layer.name}_channels", _constants(layer, plan, fast)),),
        inputs=(source,),
        output=target,
        instructions=instructions,
        cycles=cycles,
        scratch_bytes=0,
        stack_bytes=FRAME_BYTES + _PUSHED_BYTES,
        over_read=3,
    )


def _along_planes(layer: DepthwiseLayer, source: Layout) -> DepthwiseLayer:
    """The layer as the planes store it: transposed if they are."""
    if not source.transposed:
        return layer
    height, width, channels = layer.input_shape
    top, left, bottom, right = layer.padding
    return DepthwiseLayer(
        layer.name,
        (width, height, channels),
        layer.weights.transpose(1, 0, 2),
        layer.bias,
        layer.input_zero,
        layer.requantization,
        (layer.strides[1], layer.strides[0]),
        (left, top, right, bottom),
        layer.input_range,
    )


def _tiles(layer: DepthwiseLayer) -> Iterator[Tile]:
    """Two output rows at a time, the last alone if they are odd."""
    height, stride, top = layer.output_shape[0], layer.strides[0], layer.padding[0]
    for row in range(0, height, 2):
        rows = min(2, height - row)
        starts = [(row + r) * stride - top for r in range(rows)]
        first, last = max(starts[0], 0), min(starts[-1] + KERNEL[0], layer.input_shape[0])
        taps = tuple(
            tuple(tap_under(y, start, KERNEL[0], layer.input_shape[0]) for start in starts) for y in range(first, last)
        )
        yield Tile(row, rows, first, taps)


def _groups(layer: DepthwiseLayer, source: Layout) -> Iterator[Group]:
    """Two output columns at a time. Halfwords want windows that start at a word: a column alone goes before if not."""
    width, stride, left = layer.output_shape[1], layer.strides[1], layer.padding[1]
    column = 0
    while column < width:
        start = column * stride - left
        alone = source.order is Order.PLANES16 and stride == 1 and (start < 0 or start % 2 == 1)
        columns = 1 if alone else min(2, width - column)
        yield _group(layer, source, column, columns)
        column += columns


def _group(layer: DepthwiseLayer, source: Layout, column: int, columns: int) -> Group:
    width, stride, left = layer.input_shape[1], layer.strides[1], layer.padding[1]
    starts = [(column + c) * stride - left for c in range(columns)]
    first, last = max(starts[0], 0), min(starts[-1] + KERNEL[1], width)
    if source.order is Order.PLANES16:
        base = first & ~1
        registers = [(x, x + 1) for x in range(base, last, 2)]
    else:
        base = max(min(first, width - 4), 0)
        registers = [(base, base + 2), (base + 1, base + 3), *((x, width) for x in range(base + 4, last))]
    taps = tuple(
        tuple(tuple(tap_under(x, start, KERNEL[1], width) for x in pair) for start in starts) for pair in registers
    )
    return Group(column, columns, base, taps)


def _constants(layer: DepthwiseLayer, plan: Plan, fast: FastRequantization) -> np.ndarray:
    """Per channel: weight registers, multiplier, addend, bias, and the exponent if it has its own."""
    weights = layer.weights.astype(np.int64) << fast.prescale
    columns = [*_weight_words(plan, weights.transpose(2, 0, 1))]
    biases = layer.bias.astype(np.int64) << fast.prescale
    last = [fast.exponents] if plan.exponent is None else []
    words = np.stack([*columns, fast.multipliers, fast.addends, biases, *last], axis=1)
    return (words & 0xFFFFFFFF).astype(np.uint32).ravel()


def _weight_words(plan: Plan, w: np.ndarray) -> Iterator[np.ndarray]:
    """Each weight register's words for all channels, of weights [channel, row, column]."""
    if plan.halfwords:
        for row in range(3):
            yield packed(w[:, row, 0:2])[:, 0]
            yield packed(w[:, row, 1:3])[:, 0]
        return
    for row in range(3):
        yield packed(w[:, row, [0, 2]])[:, 0]
    yield packed(w[:, [0, 1], 1])[:, 0]
    yield packed(np.stack([w[:, 2, 1], np.zeros_like(w[:, 2, 1])], 1))[:, 0]


def _row_weights(plan: Plan, row: int) -> Weights:
    """Where the weights of a kernel row lie."""
    if plan.halfwords:
        first, second = f"r{2 * row}", f"r{2 * row + 1}"
        return Weights({(0, 1): first, (1, 2): second}, {0: (first, "b"), 1: (second, "b"), 2: (second, "t")})
    outer, middle = f"r{row}", (("r3", "b"), ("r3", "t"), ("r4", "b"))[row]
    return Weights({(0, 2): outer}, {0: (outer, "b"), 1: middle, 2: (outer, "t")})


@cache
def _emit(plan: Plan) -> Assembly:
    asm = Assembly()
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}")
    asm.add("r3", "r12", plan.constants_bytes * plan.channels, "r4")
    asm.add("r1", "r1", plan.target.origin, "r4")
    asm.emit(f"strd r12, r3, [sp, #{FRAME_CONSTANTS}]", f"strd r0, r1, [sp, #{FRAME_PLANE}]")
    closing = (f"ldrd r0, r1, [sp, #{FRAME_CONSTANTS}]", "cmp r0, r1")
    with asm.loop(plan.channels, closing=closing):
        _emit_channel_start(asm, plan)
        _emit_plane(asm, plan)
    asm.emit(f"add sp, sp, #{FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_channel_start(asm: Assembly, plan: Plan) -> None:
    """The channel's constants into registers and frame, the frame's pointers on to the next channel."""
    last = plan.weight_registers - 1
    asm.emit(f"ldr r12, [sp, #{FRAME_CONSTANTS}]", f"ldrd {INPUT}, {OUTPUT}, [sp, #{FRAME_PLANE}]")
    own = "" if plan.exponent is not None else ", r11"
    asm.emit(f"ldmia r12!, {{r0-r{last}, r8, r9, r10{own}}}", f"strd r8, r9, [sp, #{FRAME_MULTIPLIER}]")
    asm.emit(f"str r10, [sp, #{FRAME_BIAS}]" if plan.halfwords else "mov r5, r10", f"str r12, [sp, #{FRAME_CONSTANTS}]")
    if plan.exponent is None:
        asm.emit(f"str r11, [sp, #{FRAME_EXPONENT}]")
    asm.add("r8", INPUT, plan.source.channel_stride, "r10")
    asm.add("r9", OUTPUT, plan.target.channel_stride, "r10")
    asm.emit(f"strd r8, r9, [sp, #{FRAME_PLANE}]")


def _emit_plane(asm: Assembly, plan: Plan) -> None:
    """All tiles of a plane, equal ones in a loop."""
    row_stride, out_stride = _strides(plan)
    input_row = output_row = 0
    for _, run in groupby(plan.tiles, key=lambda tile: tile.pattern):
        tiles = list(run)
        pointed = _pointed_row(plan, tiles[0])
        asm.add(INPUT, INPUT, (pointed - input_row) * row_stride, "r12")
        asm.add(OUTPUT, OUTPUT, (tiles[0].row - output_row) * out_stride, "r12")
        step = tiles[0].height * plan.row_step
        if len(tiles) > 1:
            asm.add("r12", INPUT, len(tiles) * step * row_stride, "r12")
            asm.emit(f"str r12, [sp, #{FRAME_ROWS_END}]")
        with asm.loop(len(tiles), closing=(f"ldr r12, [sp, #{FRAME_ROWS_END}]", f"cmp {INPUT}, r12")):
            _emit_tile(asm, plan, tiles[0])
            if len(tiles) > 1:
                asm.add(INPUT, INPUT, step * row_stride, "r12")
                asm.add(OUTPUT, OUTPUT, tiles[0].height * out_stride, "r12")
        moved = len(tiles) if len(tiles) > 1 else 0
        input_row = pointed + moved * step
        output_row = tiles[0].row + moved * tiles[0].height


def _pointed_row(plan: Plan, tile: Tile) -> int:
    """The input row the pointer stands on: the tile's first, or the one before where that does not start at a word."""
    return tile.first_input - (tile.first_input * _strides(plan)[0] % 4 != 0)


def _strides(plan: Plan) -> tuple[int, int]:
    if plan.source.transposed:
        return plan.source.column_stride, plan.target.column_stride
    return plan.source.row_stride, plan.target.row_stride


def _column_strides(plan: Plan) -> tuple[int, int]:
    if plan.source.transposed:
        return plan.source.row_stride, plan.target.row_stride
    return plan.source.column_stride, plan.target.column_stride


@dataclass
class _Position:
    """How far the input and output pointers have moved within a row."""

    input: int = 0
    output: int = 0


def _emit_tile(asm: Assembly, plan: Plan, tile: Tile) -> None:
    """One tile across the whole width; the pointers end where they began."""
    input_step, output_step = _column_strides(plan)
    position = _Position()
    for _, run in groupby(plan.groups, key=lambda group: group.pattern):
        groups = list(run)
        rounds = len(groups) // plan.unrolled_groups
        if rounds > 1:
            _emit_looped_groups(asm, plan, tile, groups[: rounds * plan.unrolled_groups], position)
            groups = groups[rounds * plan.unrolled_groups :]
        for group in groups:
            _emit_group(asm, plan, tile, group, position)
    asm.add(INPUT, INPUT, -position.input * input_step, "r12")
    asm.add(OUTPUT, OUTPUT, -position.output * output_step, "r12")


def _emit_looped_groups(asm: Assembly, plan: Plan, tile: Tile, groups: list[Group], position: _Position) -> None:
    input_step, output_step = _column_strides(plan)
    unrolled = plan.unrolled_groups
    across = groups[unrolled].base - groups[0].base
    columns = groups[unrolled].column - groups[0].column
    rounds = len(groups) // unrolled
    asm.add("r12", INPUT, rounds * across * input_step, "r12")
    asm.emit(f"str r12, [sp, #{FRAME_COLUMNS_END}]")
    with asm.loop(rounds, closing=(f"ldr r12, [sp, #{FRAME_COLUMNS_END}]", f"cmp {INPUT}, r12")):
        for group in groups[:unrolled]:
            _emit_group(asm, plan, tile, group, position)
        asm.add(INPUT, INPUT, across * input_step, "r12")
        asm.add(OUTPUT, OUTPUT, columns * output_step, "r12")
    position.input += rounds * across
    position.output += rounds * columns


def _emit_group(asm: Assembly, plan: Plan, tile: Tile, group: Group, position: _Position) -> None:
    """All products of a group's outputs, then their requantisation and stores."""
    fresh = _Fresh(plan, tile.height * group.width)
    fresh.emit_bias(asm)
    row_stride, _ = _strides(plan)
    input_step, _ = _column_strides(plan)
    for row, kernel_rows in enumerate(tile.taps):
        down = tile.first_input + row - _pointed_row(plan, tile)
        offset = down * row_stride + (group.base - position.input) * input_step
        aligned = (tile.first_input + row) * row_stride % 4 == 0
        _emit_row(asm, plan, group, kernel_rows, _Place(offset, aligned), fresh)
    _emit_results(asm, plan, tile, group, position)


@dataclass(frozen=True)
class _Place:
    """Where a row's inputs for a group begin, from the input pointer, and whether that is a word's beginning."""

    offset: int
    aligned: bool


class _Fresh:
    """The addend of the next product of an accumulator: the bias first, itself afterwards.

    Halfword planes leave no register for the bias: it is loaded into the accumulator that starts last.
    """

    def __init__(self, plan: Plan, accumulators: int) -> None:
        self._started: set[str] = set()
        self._bias = ACCUMULATORS[accumulators - 1] if plan.halfwords else "r5"

    def emit_bias(self, asm: Assembly) -> None:
        if self._bias != "r5":
            asm.emit(f"ldr {self._bias}, [sp, #{FRAME_BIAS}]")

    def addend(self, accumulator: str) -> str:
        if accumulator in self._started:
            return accumulator
        self._started.add(accumulator)
        return self._bias


def _emit_row(
    asm: Assembly, plan: Plan, group: Group, kernel_rows: tuple[int | None, ...], place: _Place, fresh: _Fresh
) -> None:
    """One input row's products, with the kernel row that lies on it for each output row."""
    for index, taps in enumerate(group.taps):
        register = _emit_load(asm, plan, group, index, place)
        for output_row, kernel_row in enumerate(kernel_rows):
            if kernel_row is None:
                continue
            weights = _row_weights(plan, kernel_row)
            for column, halves in enumerate(taps):
                accumulator = ACCUMULATORS[output_row * group.width + column]
                for text in products((halves[0], halves[1]), register, accumulator, weights):
                    asm.emit(f"{text}, {fresh.addend(accumulator)}")


def _emit_load(asm: Assembly, plan: Plan, group: Group, index: int, place: _Place) -> str:
    """Bring the inputs of the group's register `index`; two come with one load where they can."""
    register = (FIRST, SECOND)[index % 2]
    if plan.halfwords:
        _emit_load_halfwords(asm, register, index, len(group.taps), place)
    elif index == 0:
        asm.emit(f"ldr {FIRST}, [{INPUT}, #{place.offset}]")
        asm.emit(f"uxtb16 {SECOND}, {FIRST}, ror #8", f"uxtb16 {FIRST}, {FIRST}")
    elif index > 1:
        asm.emit(f"ldrb {register}, [{INPUT}, #{place.offset + 2 + index}]")
    return register


def _emit_load_halfwords(asm: Assembly, register: str, index: int, count: int, place: _Place) -> None:
    """LDRD wants an aligned address and a short way, and brings the next register too."""
    even = index - index % 2
    pair = place.aligned and even + 1 < count and place.offset + 4 * even <= _LOAD_PAIR_REACH
    if not pair:
        asm.emit(f"ldr {register}, [{INPUT}, #{place.offset + 4 * index}]")
    elif index == even:
        asm.emit(f"ldrd {FIRST}, {SECOND}, [{INPUT}, #{place.offset + 4 * index}]")


def _emit_results(asm: Assembly, plan: Plan, tile: Tile, group: Group, position: _Position) -> None:
    _, out_row = _strides(plan)
    _, out_column = _column_strides(plan)
    used = ACCUMULATORS[: tile.height * group.width]
    unsigned = plan.target.order is not Order.PIXELS
    asm.emit(f"ldrd {FIRST}, {SECOND}, [sp, #{FRAME_MULTIPLIER}]")
    asm.emit(*(f"smmla {a}, {a}, {FIRST}, {SECOND}" for a in used))
    shift = f", asr #{plan.exponent}"
    if plan.exponent is None:
        shift = ""
        asm.emit(f"ldr {FIRST}, [sp, #{FRAME_EXPONENT}]", *(f"asr {a}, {a}, {FIRST}" for a in used))
    asm.emit(*(f"{'usat' if unsigned else 'ssat'} {a}, #8, {a}{shift}" for a in used))
    store = "strh" if plan.target.order is Order.PLANES16 else "strb"
    if (group.column - position.output) * out_column + tile.height * out_row + out_column > _REACH:
        asm.add(OUTPUT, OUTPUT, (group.column - position.output) * out_column, FIRST)
        position.output = group.column
    for index, accumulator in enumerate(used):
        row, column = divmod(index, group.width)
        offset = row * out_row + (group.column + column - position.output) * out_column
        asm.emit(f"{store} {accumulator}, [{OUTPUT}, #{offset}]")
