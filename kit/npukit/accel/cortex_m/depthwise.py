"""Depthwise convolutions on channel planes, borders skipped instead of stored.

Planes hold values counted from the zero point, so that a tap outside the image is one product less. The weights of a
3x3 kernel stay in registers while a channel's plane is computed; those of others are loaded row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from npukit.accel.cortex_m.assembly import BYTE_WORTH, Assembly
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal, entry_costs, routine
from npukit.accel.cortex_m.layer import INT8, DepthwiseLayer
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.planes import (
    RESIDENT_KERNEL,
    WIDEST_KERNEL,
    Group,
    Tile,
    WeightPlace,
    groups,
    resident_weights,
    streamed_weights,
    tiles,
    weight_words,
)
from npukit.accel.cortex_m.ranges import accumulators
from npukit.accel.cortex_m.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
    smallest_exponents,
)
from npukit.accel.cortex_m.taps import products

INPUT, OUTPUT = "r6", "r7"
ACCUMULATORS = ("r8", "r9", "r10", "r11")
FIRST, SECOND = "r12", "lr"
FRAME_MULTIPLIER = 0
FRAME_ADDEND = 4
FRAME_TIE = 8
FRAME_EXPONENT = 12
FRAME_BIAS = 16
FRAME_WEIGHTS = 20
FRAME_CONSTANTS = 24
FRAME_PLANE = 32
FRAME_ROWS_END = 40
FRAME_COLUMNS_END = 44
FRAME_BYTES = 52
_PUSHED_BYTES = 36
_LARGEST_WEIGHT = 32767
_REACH = 4095
_LOAD_PAIR_REACH = 1020
_COLUMN_ROUNDS = (1, 2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class Plan:
    """Everything the emitter needs to know."""

    channels: int
    row_step: int
    source: Layout
    target: Layout
    exponent: int | None
    """E of all channels, or None if each brings its own"""
    ties: bool
    resident: bool
    weights: WeightPlace
    tiles: tuple[Tile, ...]
    groups: tuple[Group, ...]
    unrolled_groups: int

    @property
    def halfwords(self) -> bool:
        return self.source.order is Order.PLANES16

    @property
    def tiles_start_alike(self) -> bool:
        """Whether equal tiles, which run through the same code, all start at a word or all off it."""
        return self.tiles[0].height * self.row_step * _strides(self)[0] % 4 == 0

    @property
    def weight_registers(self) -> tuple[str, ...]:
        """Those loaded at once: of the whole kernel, or of a row."""
        rows = self.weights.rows if self.resident else self.weights.rows[:1]
        return tuple(sorted({register for row in rows for register, _ in row}))

    @property
    def weight_words(self) -> int:
        return len(self.weight_registers) * (1 if self.resident else len(self.weights.rows))


def depthwise(
    layer: DepthwiseLayer, source: Layout, target: Layout, byte_worth: float = BYTE_WORTH
) -> Kernel | Refusal:
    """The depthwise convolution from planes to another layout; `byte_worth` is what a byte of code must save."""
    variant = f"depthwise {source.order.value} to {target.order.value}"
    reason = _refusal(layer, source, target)
    if reason:
        return Refusal(variant, reason)
    for exponents in (*common_exponents(layer.requantization), smallest_exponents(layer.requantization)):
        fast = fast_requantization(layer.requantization, exponents, unsigned=target.order is not Order.PIXELS)
        reason = overflow(fast, accumulators(layer).magnitude) or _weights_refusal(layer, fast)
        if not reason:
            return _fastest(layer, source, target, fast, variant, byte_worth)
    return Refusal(variant, str(reason))


def _refusal(layer: DepthwiseLayer, source: Layout, target: Layout) -> str | None:
    if source.order is Order.PIXELS:
        return "reads planes, not pixels"
    if max(layer.kernel) > WIDEST_KERNEL:
        return f"a row of a {layer.kernel[0]}x{layer.kernel[1]} kernel does not fit the registers"
    if source.order is Order.PLANES8 and layer.input_zero != INT8[0]:
        return f"planes8 need the zero point {INT8[0]}, it is {layer.input_zero}"
    if target.order is not Order.PIXELS and layer.requantization.zero_point != INT8[0]:
        return f"planes need the zero point {INT8[0]}, it is {layer.requantization.zero_point}"
    if source.transposed != target.transposed:
        return "input and output are transposed differently"
    if any(side >= layer.kernel[axis % 2] for axis, side in enumerate(layer.padding)):
        return f"the padding {layer.padding} reaches beyond the kernel"
    if (max(layer.kernel) + 2) * max(source.row_stride, source.column_stride) > _REACH:
        return f"rows of {source.shape[1]} are too long for immediate offsets"
    return clamp_refusal(layer.requantization)


def _weights_refusal(layer: DepthwiseLayer, fast: FastRequantization) -> str | None:
    largest = np.abs(layer.weights.astype(np.int64)).max((0, 1)) << fast.prescale
    if largest.max() > _LARGEST_WEIGHT:
        return f"right shifts that differ by {int(np.ptp(fast.prescale))} push prescaled weights out of 16 bits"
    return None


def _fastest(
    layer: DepthwiseLayer, source: Layout, target: Layout, fast: FastRequantization, variant: str, byte_worth: float
) -> Kernel:
    layer = _along_planes(layer, source)
    plans = _plans(layer, source, target, fast)
    emitted = [(plan, _emit(plan)) for plan in plans]
    plan, body = min(emitted, key=lambda e: e[1].cost(byte_worth))
    instructions, cycles = entry_costs(body, constants=True)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"exponents up to {fast.exponents.max()}, input zero point {layer.input_zero}",
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


def _plans(layer: DepthwiseLayer, source: Layout, target: Layout, fast: FastRequantization) -> list[Plan]:
    """One plan for each number of column groups written out."""
    halfwords, resident = source.order is Order.PLANES16, layer.kernel == RESIDENT_KERNEL
    place = resident_weights if resident else lambda *, halfwords: streamed_weights(layer.kernel, halfwords=halfwords)
    across = tuple(groups(layer, halfwords=halfwords))
    return [
        Plan(
            layer.input_shape[2],
            layer.strides[0],
            source,
            target,
            fast.exponent,
            fast.needs_ties,
            resident,
            place(halfwords=halfwords),
            tuple(tiles(layer)),
            across,
            unrolled,
        )
        for unrolled in (*_COLUMN_ROUNDS, len(across))
    ]


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


def _constants(layer: DepthwiseLayer, plan: Plan, fast: FastRequantization) -> np.ndarray:
    """Per channel: the scalars of the frame, then the weights' registers."""
    weights = layer.weights.astype(np.int64) << fast.prescale
    biases = layer.bias.astype(np.int64) << fast.prescale
    registers = weight_words(plan.weights, weights.transpose(2, 0, 1), resident=plan.resident)
    scalars = (fast.multipliers, fast.addends, fast.ties, fast.exponents, biases)
    words = np.stack([*(scalars[index] for index in _scalars(plan)), *registers], axis=1)
    return (words & 0xFFFFFFFF).astype(np.uint32).ravel()


def _scalars(plan: Plan) -> list[int]:
    """Which of multiplier, addend, tie, exponent and bias the constants hold, by their place in the frame."""
    return [0, 1, *([2] if plan.ties else []), *([3] if plan.exponent is None else []), 4]


@cache
def _emit(plan: Plan) -> Assembly:
    asm = Assembly()
    constants = 4 * (len(_scalars(plan)) + plan.weight_words)
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}")
    asm.add("r3", "r12", constants * plan.channels, "r4")
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
    asm.comment("the next channel: its constants to registers and frame, its planes")
    asm.emit(f"ldr r12, [sp, #{FRAME_CONSTANTS}]", f"ldrd {INPUT}, {OUTPUT}, [sp, #{FRAME_PLANE}]")
    _emit_scalars(asm, plan)
    if plan.resident:
        asm.emit(f"ldmia r12!, {{{', '.join(plan.weight_registers)}}}")
    else:
        asm.emit(f"str r12, [sp, #{FRAME_WEIGHTS}]")
        asm.add("r12", "r12", 4 * plan.weight_words, "r8")
    asm.emit(f"str r12, [sp, #{FRAME_CONSTANTS}]")
    asm.add("r8", INPUT, plan.source.channel_stride, "r10")
    asm.add("r9", OUTPUT, plan.target.channel_stride, "r10")
    asm.emit(f"strd r8, r9, [sp, #{FRAME_PLANE}]")


def _emit_scalars(asm: Assembly, plan: Plan) -> None:
    """Into the frame, but the bias into r5 where byte planes leave it free."""
    multiplier, addend, *others = ("r8", "r9", "r10", "r11", "lr")[: len(_scalars(plan))]
    asm.emit(f"ldmia r12!, {{{', '.join((multiplier, addend, *others))}}}")
    asm.emit(f"strd {multiplier}, {addend}, [sp, #{FRAME_MULTIPLIER}]")
    for index, register in zip(_scalars(plan)[2:-1], others, strict=False):
        asm.emit(f"str {register}, [sp, #{4 * index}]")
    asm.emit(f"str {others[-1]}, [sp, #{FRAME_BIAS}]" if plan.halfwords else f"mov r5, {others[-1]}")


def _emit_plane(asm: Assembly, plan: Plan) -> None:
    """All tiles of a plane, equal ones in a loop."""
    row_stride, out_stride = _strides(plan)
    input_row = output_row = 0
    for _, run in groupby(plan.tiles, key=lambda tile: tile.pattern):
        equal = list(run)
        pointed = _pointed_row(plan, equal[0])
        asm.add(INPUT, INPUT, (pointed - input_row) * row_stride, "r12")
        asm.add(OUTPUT, OUTPUT, (equal[0].row - output_row) * out_stride, "r12")
        _emit_equal_tiles(asm, plan, equal)
        moved = len(equal) if len(equal) > 1 else 0
        input_row = pointed + moved * equal[0].height * plan.row_step
        output_row = equal[0].row + moved * equal[0].height


def _emit_equal_tiles(asm: Assembly, plan: Plan, equal: list[Tile]) -> None:
    """The pointers move past the tiles if there are several."""
    row_stride, out_stride = _strides(plan)
    step = equal[0].height * plan.row_step * row_stride
    if len(equal) > 1:
        asm.add("r12", INPUT, len(equal) * step, "r12")
        asm.emit(f"str r12, [sp, #{FRAME_ROWS_END}]")
    with asm.loop(len(equal), closing=(f"ldr r12, [sp, #{FRAME_ROWS_END}]", f"cmp {INPUT}, r12")):
        _emit_tile(asm, plan, equal[0])
        if len(equal) > 1:
            asm.add(INPUT, INPUT, step, "r12")
            asm.add(OUTPUT, OUTPUT, equal[0].height * out_stride, "r12")


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
        equal = list(run)
        rounds = len(equal) // plan.unrolled_groups
        if rounds > 1:
            _emit_looped_groups(asm, plan, tile, equal[: rounds * plan.unrolled_groups], position)
            equal = equal[rounds * plan.unrolled_groups :]
        for group in equal:
            _emit_group(asm, plan, tile, group, position)
    asm.add(INPUT, INPUT, -position.input * input_step, "r12")
    asm.add(OUTPUT, OUTPUT, -position.output * output_step, "r12")


def _emit_looped_groups(asm: Assembly, plan: Plan, tile: Tile, equal: list[Group], position: _Position) -> None:
    input_step, output_step = _column_strides(plan)
    unrolled = plan.unrolled_groups
    across = equal[unrolled].base - equal[0].base
    columns = equal[unrolled].column - equal[0].column
    rounds = len(equal) // unrolled
    asm.add("r12", INPUT, rounds * across * input_step, "r12")
    asm.emit(f"str r12, [sp, #{FRAME_COLUMNS_END}]")
    with asm.loop(rounds, closing=(f"ldr r12, [sp, #{FRAME_COLUMNS_END}]", f"cmp {INPUT}, r12")):
        before = _Position(position.input, position.output)
        for group in equal[:unrolled]:
            _emit_group(asm, plan, tile, group, position)
        asm.add(INPUT, INPUT, across * input_step, "r12")
        asm.add(OUTPUT, OUTPUT, (columns + before.output - position.output) * output_step, "r12")
    position.input = before.input + rounds * across
    position.output = before.output + rounds * columns


def _emit_group(asm: Assembly, plan: Plan, tile: Tile, group: Group, position: _Position) -> None:
    """All products of a group's outputs, then their requantisation and stores."""
    fresh = _Fresh(plan, tile.height * group.width)
    asm.comment(f"{tile.height} x {group.width} outputs")
    fresh.emit_bias(asm)
    row_stride, _ = _strides(plan)
    input_step, _ = _column_strides(plan)
    for row, kernel_rows in enumerate(tile.taps):
        down = tile.first_input + row - _pointed_row(plan, tile)
        offset = down * row_stride + (group.base - position.input) * input_step
        aligned = plan.tiles_start_alike and (tile.first_input + row) * row_stride % 4 == 0
        if not plan.resident and kernel_rows[0] is not None:
            _emit_row_weights(asm, plan, kernel_rows[0])
        _emit_row(asm, plan, group, kernel_rows, _Place(offset, aligned), fresh)
    _emit_results(asm, plan, tile, group, position)


def _emit_row_weights(asm: Assembly, plan: Plan, kernel_row: int) -> None:
    registers = list(plan.weight_registers)
    asm.emit(f"ldr {FIRST}, [sp, #{FRAME_WEIGHTS}]")
    asm.add(FIRST, FIRST, 4 * len(registers) * kernel_row, SECOND)
    asm.emit(f"ldmia {FIRST}, {{{', '.join(registers)}}}" if registers[1:] else f"ldr {registers[0]}, [{FIRST}]")


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
            weights = plan.weights.of_row(kernel_row)
            for column, (low, high) in enumerate(taps):
                accumulator = ACCUMULATORS[output_row * group.width + column]
                for text in products((low, high), register, accumulator, weights):
                    asm.emit(f"{text}, {fresh.addend(accumulator)}")


def _emit_load(asm: Assembly, plan: Plan, group: Group, index: int, place: _Place) -> str:
    """Bring the inputs of the group's register `index`; two come with one load where they can."""
    register, count = (FIRST, SECOND)[index % 2], len(group.taps)
    if plan.halfwords:
        _emit_load_halfwords(asm, register, index, count, place)
    elif index % 2 == 0 and index + 1 < count:
        asm.emit(f"ldr {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
        asm.emit(f"uxtb16 {SECOND}, {FIRST}, ror #8", f"uxtb16 {FIRST}, {FIRST}")
    elif index % 2 == 0:
        asm.emit(f"ldrb {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
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
    used = ACCUMULATORS[: tile.height * group.width]
    saturate = "ssat" if plan.target.order is Order.PIXELS else "usat"
    asm.comment("times the multiplier, to 8 bits, stored")
    if plan.ties:
        _emit_multiplications_with_ties(asm, used)
    else:
        asm.emit(f"ldrd {FIRST}, {SECOND}, [sp, #{FRAME_MULTIPLIER}]")
        asm.emit(*(f"smmla {a}, {a}, {FIRST}, {SECOND}" for a in used))
    shift = f", asr #{plan.exponent}" if plan.exponent is not None else ""
    if plan.exponent is None:
        asm.emit(f"ldr {FIRST}, [sp, #{FRAME_EXPONENT}]", *(f"asr {a}, {a}, {FIRST}" for a in used))
    asm.emit(*(f"{saturate} {a}, #8, {a}{shift}" for a in used))
    _emit_stores(asm, plan, tile, group, position)


def _emit_multiplications_with_ties(asm: Assembly, used: tuple[str, ...]) -> None:
    for accumulator in used:
        asm.emit(f"ldrd {FIRST}, {SECOND}, [sp, #{FRAME_ADDEND}]", f"and {SECOND}, {SECOND}, {accumulator}, asr #31")
        asm.emit(f"sub {SECOND}, {FIRST}, {SECOND}", f"ldr {FIRST}, [sp, #{FRAME_MULTIPLIER}]")
        asm.emit(f"smmla {accumulator}, {accumulator}, {FIRST}, {SECOND}")


def _emit_stores(asm: Assembly, plan: Plan, tile: Tile, group: Group, position: _Position) -> None:
    _, out_row = _strides(plan)
    _, out_column = _column_strides(plan)
    store = "strh" if plan.target.order is Order.PLANES16 else "strb"
    furthest = (group.column + group.width - position.output) * out_column + tile.height * out_row
    if furthest > _REACH:
        asm.add(OUTPUT, OUTPUT, (group.column - position.output) * out_column, FIRST)
        position.output = group.column
    for index in range(tile.height * group.width):
        row, column = divmod(index, group.width)
        offset = row * out_row + (group.column + column - position.output) * out_column
        asm.emit(f"{store} {ACCUMULATORS[index]}, [{OUTPUT}, #{offset}]")
