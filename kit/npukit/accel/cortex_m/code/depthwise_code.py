"""The assembly of a depthwise convolution: channel by channel, tile by tile of a plane, group by group of columns.

The products of a group's outputs are computed row by row, then requantised and stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby

from npukit.accel.cortex_m.code.assembly import PAIR_REACH, REACH, Assembly
from npukit.accel.cortex_m.code.planes import Group, RowTile, WeightPlace, products
from npukit.accel.cortex_m.layout import Layout, Order

INPUT, OUTPUT = "r6", "r7"
ACCUMULATORS = ("r8", "r9", "r10", "r11")
FIRST, SECOND = "r12", "lr"
FRAME_MULTIPLIER, FRAME_ADDEND, FRAME_EXPONENT, FRAME_BIAS, FRAME_WEIGHTS, FRAME_CONSTANTS = 0, 4, 12, 16, 20, 24
FRAME_PLANE, FRAME_ROWS_END, FRAME_COLUMNS_END, FRAME_BYTES = 32, 40, 44, 52
"""Offsets in the stack frame, and its size."""


@dataclass(frozen=True)
class DepthwisePlan:
    """Parameters of the emitter."""

    channels: int
    row_step: int
    source: Layout
    target: Layout
    exponent: int | None
    """The exponent E of all channels (`requantize.py`), or None if each channel has its own"""
    ties: bool
    resident: bool
    weights: WeightPlace
    tiles: tuple[RowTile, ...]
    groups: tuple[Group, ...]
    unrolled_groups: int

    @property
    def halfwords(self) -> bool:
        return self.source.order is Order.PLANES16

    @property
    def tiles_start_alike(self) -> bool:
        """True if equal tiles, which share code, start all at a word boundary or all off a boundary."""
        return self.tiles[0].height * self.row_step * self.row_strides[0] % 4 == 0

    @property
    def weight_registers(self) -> tuple[str, ...]:
        """The registers of weights loaded together: of the whole kernel, or of a row."""
        rows = self.weights.rows if self.resident else self.weights.rows[:1]
        return tuple(sorted({register for row in rows for register, _ in row}))

    @property
    def weight_words(self) -> int:
        return len(self.weight_registers) * (1 if self.resident else len(self.weights.rows))

    @property
    def row_strides(self) -> tuple[int, int]:
        """Bytes between rows of a plane, of input and output."""
        if self.source.transposed:
            return self.source.column_stride, self.target.column_stride
        return self.source.row_stride, self.target.row_stride

    @property
    def column_strides(self) -> tuple[int, int]:
        """Bytes between columns of a plane, of input and output."""
        if self.source.transposed:
            return self.source.row_stride, self.target.row_stride
        return self.source.column_stride, self.target.column_stride

    def pointed_row(self, tile: RowTile) -> int:
        """The input row of the pointer: the tile's first, or the row before if the first begins within a word."""
        return tile.first_input - (tile.first_input * self.row_strides[0] % 4 != 0)


def scalars_of(plan: DepthwisePlan) -> list[int]:
    """Frame positions of the scalars in the constants, out of multiplier, addend, tie, exponent and bias."""
    return [0, 1, *([2] if plan.ties else []), *([3] if plan.exponent is None else []), 4]


@cache
def emit(plan: DepthwisePlan) -> Assembly:
    """The routine for all channels."""
    asm = Assembly()
    constants = 4 * (len(scalars_of(plan)) + plan.weight_words)
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


def _emit_channel_start(asm: Assembly, plan: DepthwisePlan) -> None:
    """Load the channel's constants into registers and frame, and advance the frame's pointers to the next channel."""
    asm.comment("the next channel: its constants to registers and frame, its planes")
    asm.emit(f"ldr r12, [sp, #{FRAME_CONSTANTS}]", f"ldrd {INPUT}, {OUTPUT}, [sp, #{FRAME_PLANE}]")
    # Store the scalars in the frame, except the bias in r5 if byte planes leave r5 free.
    multiplier, addend, *others = ("r8", "r9", "r10", "r11", "lr")[: len(scalars_of(plan))]
    asm.emit(f"ldmia r12!, {{{', '.join((multiplier, addend, *others))}}}")
    asm.emit(f"strd {multiplier}, {addend}, [sp, #{FRAME_MULTIPLIER}]")
    for index, register in zip(scalars_of(plan)[2:-1], others, strict=False):
        asm.emit(f"str {register}, [sp, #{4 * index}]")
    asm.emit(f"str {others[-1]}, [sp, #{FRAME_BIAS}]" if plan.halfwords else f"mov r5, {others[-1]}")
    if plan.resident:
        asm.emit(f"ldmia r12!, {{{', '.join(plan.weight_registers)}}}")
    else:
        asm.emit(f"str r12, [sp, #{FRAME_WEIGHTS}]")
        asm.add("r12", "r12", 4 * plan.weight_words, "r8")
    asm.emit(f"str r12, [sp, #{FRAME_CONSTANTS}]")
    asm.add("r8", INPUT, plan.source.channel_stride, "r10")
    asm.add("r9", OUTPUT, plan.target.channel_stride, "r10")
    asm.emit(f"strd r8, r9, [sp, #{FRAME_PLANE}]")


def _emit_plane(asm: Assembly, plan: DepthwisePlan) -> None:
    """Code for all tiles of a plane, with a loop over equal tiles."""
    row_stride, out_stride = plan.row_strides
    input_row = output_row = 0
    for _, run in groupby(plan.tiles, key=lambda tile: tile.pattern):
        equal = list(run)
        pointed = plan.pointed_row(equal[0])
        asm.add(INPUT, INPUT, (pointed - input_row) * row_stride, "r12")
        asm.add(OUTPUT, OUTPUT, (equal[0].row - output_row) * out_stride, "r12")
        _emit_equal_tiles(asm, plan, equal)
        moved = len(equal) if len(equal) > 1 else 0
        input_row = pointed + moved * equal[0].height * plan.row_step
        output_row = equal[0].row + moved * equal[0].height


def _emit_equal_tiles(asm: Assembly, plan: DepthwisePlan, equal: list[RowTile]) -> None:
    """Code for equal tiles. The pointers end behind the tiles if there are several."""
    row_stride, out_stride = plan.row_strides
    step = equal[0].height * plan.row_step * row_stride
    if len(equal) > 1:
        asm.add("r12", INPUT, len(equal) * step, "r12")
        asm.emit(f"str r12, [sp, #{FRAME_ROWS_END}]")
    with asm.loop(len(equal), closing=(f"ldr r12, [sp, #{FRAME_ROWS_END}]", f"cmp {INPUT}, r12")):
        _emit_tile(asm, plan, equal[0])
        if len(equal) > 1:
            asm.add(INPUT, INPUT, step, "r12")
            asm.add(OUTPUT, OUTPUT, equal[0].height * out_stride, "r12")


def _emit_tile(asm: Assembly, plan: DepthwisePlan, tile: RowTile) -> None:
    """Code for one tile across the whole width. The pointers end where they began."""
    input_step, output_step = plan.column_strides
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


def _emit_looped_groups(
    asm: Assembly, plan: DepthwisePlan, tile: RowTile, equal: list[Group], position: _Position
) -> None:
    input_step, output_step = plan.column_strides
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


@dataclass
class _Position:
    """Columns by which the input and output pointers have advanced within a row."""

    input: int = 0
    output: int = 0


def _emit_group(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: _Position) -> None:
    """Code for all products of a group's outputs, then requantisation and stores."""
    fresh = _Fresh(plan, tile.height * group.width)
    asm.comment(f"{tile.height} x {group.width} outputs")
    if fresh.bias != "r5":
        asm.emit(f"ldr {fresh.bias}, [sp, #{FRAME_BIAS}]")
    row_stride, input_step = plan.row_strides[0], plan.column_strides[0]
    for row, kernel_rows in enumerate(tile.taps):
        down = tile.first_input + row - plan.pointed_row(tile)
        offset = down * row_stride + (group.base - position.input) * input_step
        aligned = plan.tiles_start_alike and (tile.first_input + row) * row_stride % 4 == 0
        if not plan.resident and kernel_rows[0] is not None:
            registers = list(plan.weight_registers)
            asm.emit(f"ldr {FIRST}, [sp, #{FRAME_WEIGHTS}]")
            asm.add(FIRST, FIRST, 4 * len(registers) * kernel_rows[0], SECOND)
            several = f"ldmia {FIRST}, {{{', '.join(registers)}}}"
            asm.emit(several if registers[1:] else f"ldr {registers[0]}, [{FIRST}]")
        _emit_row(asm, plan, group, kernel_rows, _Place(offset, aligned), fresh)
    _emit_results(asm, plan, tile, group, position)


@dataclass(frozen=True)
class _Place:
    """The offset of a row's inputs for a group from the input pointer. `aligned`: True for a word-aligned address."""

    offset: int
    aligned: bool


class _Fresh:
    """The addend of the next product of an accumulator: first the bias, then the accumulator itself. Halfword planes
    leave no register for the bias, so the bias is loaded into the accumulator that starts last."""

    def __init__(self, plan: DepthwisePlan, accumulators: int) -> None:
        self._started: set[str] = set()
        self.bias = ACCUMULATORS[accumulators - 1] if plan.halfwords else "r5"

    def addend(self, accumulator: str) -> str:
        if accumulator in self._started:
            return accumulator
        self._started.add(accumulator)
        return self.bias


def _emit_row(
    asm: Assembly, plan: DepthwisePlan, group: Group, kernel_rows: tuple[int | None, ...], place: _Place, fresh: _Fresh
) -> None:
    """Products of one input row. `kernel_rows`: the kernel row on the input row for each output row."""
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


def _emit_load(asm: Assembly, plan: DepthwisePlan, group: Group, index: int, place: _Place) -> str:
    """Load the inputs of the group's register `index`. Where possible one load brings two registers."""
    register, count = (FIRST, SECOND)[index % 2], len(group.taps)
    if plan.halfwords:
        even = index - index % 2
        pair = place.aligned and even + 1 < count and place.offset + 4 * even <= PAIR_REACH
        if not pair:
            asm.emit(f"ldr {register}, [{INPUT}, #{place.offset + 4 * index}]")
        elif index == even:
            asm.emit(f"ldrd {FIRST}, {SECOND}, [{INPUT}, #{place.offset + 4 * index}]")
    elif index % 2 == 0 and index + 1 < count:
        asm.emit(f"ldr {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
        asm.emit(f"uxtb16 {SECOND}, {FIRST}, ror #8", f"uxtb16 {FIRST}, {FIRST}")
    elif index % 2 == 0:
        asm.emit(f"ldrb {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
    return register


def _emit_results(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: _Position) -> None:
    used = ACCUMULATORS[: tile.height * group.width]
    saturate = "ssat" if plan.target.order is Order.PIXELS else "usat"
    asm.comment("times the multiplier, to 8 bits, stored")
    if plan.ties:
        for accumulator in used:
            asm.emit(f"ldrd {FIRST}, {SECOND}, [sp, #{FRAME_ADDEND}]")
            asm.emit(f"and {SECOND}, {SECOND}, {accumulator}, asr #31")
            asm.emit(f"sub {SECOND}, {FIRST}, {SECOND}", f"ldr {FIRST}, [sp, #{FRAME_MULTIPLIER}]")
            asm.emit(f"smmla {accumulator}, {accumulator}, {FIRST}, {SECOND}")
    else:
        asm.emit(f"ldrd {FIRST}, {SECOND}, [sp, #{FRAME_MULTIPLIER}]")
        asm.emit(*(f"smmla {a}, {a}, {FIRST}, {SECOND}" for a in used))
    shift = f", asr #{plan.exponent}" if plan.exponent is not None else ""
    if plan.exponent is None:
        asm.emit(f"ldr {FIRST}, [sp, #{FRAME_EXPONENT}]", *(f"asr {a}, {a}, {FIRST}" for a in used))
    asm.emit(*(f"{saturate} {a}, #8, {a}{shift}" for a in used))
    _emit_stores(asm, plan, tile, group, position)


def _emit_stores(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: _Position) -> None:
    out_row, out_column = plan.row_strides[1], plan.column_strides[1]
    store = "strh" if plan.target.order is Order.PLANES16 else "strb"
    furthest = (group.column + group.width - position.output) * out_column + tile.height * out_row
    if furthest > REACH:
        asm.add(OUTPUT, OUTPUT, (group.column - position.output) * out_column, FIRST)
        position.output = group.column
    base, at = OUTPUT, 0
    for index in range(tile.height * group.width):
        row, column = divmod(index, group.width)
        offset = row * out_row + (group.column + column - position.output) * out_column
        if not 0 <= offset - at <= REACH:
            asm.add(SECOND, OUTPUT, offset, FIRST)
            base, at = SECOND, offset
        asm.emit(f"{store} {ACCUMULATORS[index]}, [{base}, #{offset - at}]")
