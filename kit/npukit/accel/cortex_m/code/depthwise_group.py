"""The assembly for a group of outputs of a depthwise convolution: products row by row, requantisation, stores."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.accel.cortex_m.code.assembly import PAIR_REACH, REACH, Assembly
from npukit.accel.cortex_m.code.depthwise_plan import (
    ACCUMULATORS,
    FIRST,
    FRAME_ADDEND,
    FRAME_BIAS,
    FRAME_EXPONENT,
    FRAME_MULTIPLIER,
    FRAME_WEIGHTS,
    INPUT,
    OUTPUT,
    SECOND,
    DepthwisePlan,
    column_strides,
    pointed_row,
    strides,
)
from npukit.accel.cortex_m.code.planes import Group, RowTile
from npukit.accel.cortex_m.code.taps import products
from npukit.accel.cortex_m.layout import Order


@dataclass
class Position:
    """Columns by which the input and output pointers have advanced within a row."""

    input: int = 0
    output: int = 0


def emit_group(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: Position) -> None:
    """Code for all products of a group's outputs, then requantisation and stores."""
    fresh = _Fresh(plan, tile.height * group.width)
    asm.comment(f"{tile.height} x {group.width} outputs")
    fresh.emit_bias(asm)
    row_stride, _ = strides(plan)
    input_step, _ = column_strides(plan)
    for row, kernel_rows in enumerate(tile.taps):
        down = tile.first_input + row - pointed_row(plan, tile)
        offset = down * row_stride + (group.base - position.input) * input_step
        aligned = plan.tiles_start_alike and (tile.first_input + row) * row_stride % 4 == 0
        if not plan.resident and kernel_rows[0] is not None:
            _emit_row_weights(asm, plan, kernel_rows[0])
        _emit_row(asm, plan, group, kernel_rows, _Place(offset, aligned), fresh)
    _emit_results(asm, plan, tile, group, position)


def _emit_row_weights(asm: Assembly, plan: DepthwisePlan, kernel_row: int) -> None:
    registers = list(plan.weight_registers)
    asm.emit(f"ldr {FIRST}, [sp, #{FRAME_WEIGHTS}]")
    asm.add(FIRST, FIRST, 4 * len(registers) * kernel_row, SECOND)
    asm.emit(f"ldmia {FIRST}, {{{', '.join(registers)}}}" if registers[1:] else f"ldr {registers[0]}, [{FIRST}]")


@dataclass(frozen=True)
class _Place:
    """The offset of a row's inputs for a group from the input pointer. `aligned`: True for a word-aligned address."""

    offset: int
    aligned: bool


class _Fresh:
    """The addend of the next product of an accumulator: first the bias, then the accumulator itself.

    Halfword planes leave no register for the bias, so the bias is loaded into the accumulator that starts last.
    """

    def __init__(self, plan: DepthwisePlan, accumulators: int) -> None:
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
        _emit_load_halfwords(asm, register, index, count, place)
    elif index % 2 == 0 and index + 1 < count:
        asm.emit(f"ldr {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
        asm.emit(f"uxtb16 {SECOND}, {FIRST}, ror #8", f"uxtb16 {FIRST}, {FIRST}")
    elif index % 2 == 0:
        asm.emit(f"ldrb {FIRST}, [{INPUT}, #{place.offset + 2 * index}]")
    return register


def _emit_load_halfwords(asm: Assembly, register: str, index: int, count: int, place: _Place) -> None:
    """Load halfwords. LDRD also brings the next register, but needs an aligned address and a small offset."""
    even = index - index % 2
    pair = place.aligned and even + 1 < count and place.offset + 4 * even <= PAIR_REACH
    if not pair:
        asm.emit(f"ldr {register}, [{INPUT}, #{place.offset + 4 * index}]")
    elif index == even:
        asm.emit(f"ldrd {FIRST}, {SECOND}, [{INPUT}, #{place.offset + 4 * index}]")


def _emit_results(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: Position) -> None:
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


def _emit_stores(asm: Assembly, plan: DepthwisePlan, tile: RowTile, group: Group, position: Position) -> None:
    _, out_row = strides(plan)
    _, out_column = column_strides(plan)
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
