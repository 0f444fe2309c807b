"""The assembly of a depthwise convolution: channel by channel, tile by tile of a plane."""

from __future__ import annotations

from functools import cache
from itertools import groupby

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.depthwise_group import Position, emit_group
from npukit.accel.cortex_m.code.depthwise_plan import (
    FRAME_BIAS,
    FRAME_BYTES,
    FRAME_COLUMNS_END,
    FRAME_CONSTANTS,
    FRAME_MULTIPLIER,
    FRAME_PLANE,
    FRAME_ROWS_END,
    FRAME_WEIGHTS,
    INPUT,
    OUTPUT,
    DepthwisePlan,
    column_strides,
    pointed_row,
    strides,
)
from npukit.accel.cortex_m.code.planes import Group, RowTile


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


def _emit_scalars(asm: Assembly, plan: DepthwisePlan) -> None:
    """Store the scalars in the frame, except the bias in r5 if byte planes leave r5 free."""
    multiplier, addend, *others = ("r8", "r9", "r10", "r11", "lr")[: len(scalars_of(plan))]
    asm.emit(f"ldmia r12!, {{{', '.join((multiplier, addend, *others))}}}")
    asm.emit(f"strd {multiplier}, {addend}, [sp, #{FRAME_MULTIPLIER}]")
    for index, register in zip(scalars_of(plan)[2:-1], others, strict=False):
        asm.emit(f"str {register}, [sp, #{4 * index}]")
    asm.emit(f"str {others[-1]}, [sp, #{FRAME_BIAS}]" if plan.halfwords else f"mov r5, {others[-1]}")


def _emit_plane(asm: Assembly, plan: DepthwisePlan) -> None:
    """Code for all tiles of a plane, with a loop over equal tiles."""
    row_stride, out_stride = strides(plan)
    input_row = output_row = 0
    for _, run in groupby(plan.tiles, key=lambda tile: tile.pattern):
        equal = list(run)
        pointed = pointed_row(plan, equal[0])
        asm.add(INPUT, INPUT, (pointed - input_row) * row_stride, "r12")
        asm.add(OUTPUT, OUTPUT, (equal[0].row - output_row) * out_stride, "r12")
        _emit_equal_tiles(asm, plan, equal)
        moved = len(equal) if len(equal) > 1 else 0
        input_row = pointed + moved * equal[0].height * plan.row_step
        output_row = equal[0].row + moved * equal[0].height


def _emit_equal_tiles(asm: Assembly, plan: DepthwisePlan, equal: list[RowTile]) -> None:
    """Code for equal tiles. The pointers end behind the tiles if there are several."""
    row_stride, out_stride = strides(plan)
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
    input_step, output_step = column_strides(plan)
    position = Position()
    for _, run in groupby(plan.groups, key=lambda group: group.pattern):
        equal = list(run)
        rounds = len(equal) // plan.unrolled_groups
        if rounds > 1:
            _emit_looped_groups(asm, plan, tile, equal[: rounds * plan.unrolled_groups], position)
            equal = equal[rounds * plan.unrolled_groups :]
        for group in equal:
            emit_group(asm, plan, tile, group, position)
    asm.add(INPUT, INPUT, -position.input * input_step, "r12")
    asm.add(OUTPUT, OUTPUT, -position.output * output_step, "r12")


def _emit_looped_groups(
    asm: Assembly, plan: DepthwisePlan, tile: RowTile, equal: list[Group], position: Position
) -> None:
    input_step, output_step = column_strides(plan)
    unrolled = plan.unrolled_groups
    across = equal[unrolled].base - equal[0].base
    columns = equal[unrolled].column - equal[0].column
    rounds = len(equal) // unrolled
    asm.add("r12", INPUT, rounds * across * input_step, "r12")
    asm.emit(f"str r12, [sp, #{FRAME_COLUMNS_END}]")
    with asm.loop(rounds, closing=(f"ldr r12, [sp, #{FRAME_COLUMNS_END}]", f"cmp {INPUT}, r12")):
        before = Position(position.input, position.output)
        for group in equal[:unrolled]:
            emit_group(asm, plan, tile, group, position)
        asm.add(INPUT, INPUT, across * input_step, "r12")
        asm.add(OUTPUT, OUTPUT, (columns + before.output - position.output) * output_step, "r12")
    position.input = before.input + rounds * across
    position.output = before.output + rounds * columns
