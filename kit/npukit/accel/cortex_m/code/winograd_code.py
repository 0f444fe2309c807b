"""The assembly of Winograd's convolution: lines of tiles, pairs of tiles in a line, channel pairs in a pair of tiles.

The four rows of points are unrolled, or are a loop if bytes of code are worth more than the loop's cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import PAIR_REACH, Assembly
from npukit.accel.cortex_m.layout import Layout

POINT_ORDER = (1, 2, 3, 0)
TILE_ROWS, PAIR_COLUMNS = 2, 4
POINTS = 16
_SUMS = ("r2", "r3", "r4", "r5")
_OTHERS = ("r6", "r7", "r8", "r9")
_WEIGHTS = ("r10", "r11", "r12", "lr")
RESULT_BYTES = 128
FRAME_OUTPUT, FRAME_STREAM_END, FRAME_STREAM, FRAME_POINTS, FRAME_COLUMNS, FRAME_PAIR_INPUT = range(0, 24, 4)
FRAME_PAIR_OUTPUT, FRAME_LAST_PAIR, FRAME_LINE_INPUT, FRAME_LINE_OUTPUT, FRAME_LAST_LINE = range(24, 44, 4)
FRAME_RESULTS, FRAME_BYTES = 44, 48
"""Offsets in the stack frame, and its size."""


@dataclass(frozen=True)
class WinogradPlan:
    """Parameters of the emitter."""

    source: Layout
    target: Layout
    origin: int
    exponent: int
    ties: bool
    stream_bytes: int
    looped: bool
    """True if the rows of points are a loop."""

    @property
    def words(self) -> int:
        """Words of four channels per pixel."""
        return -(-self.source.shape[2] // 4)

    @property
    def columns(self) -> int:
        """Input columns under a line of tiles."""
        return self.target.shape[1] + 2

    @property
    def column_bytes(self) -> int:
        """Bytes between rows of transformed columns."""
        return 4 * self.columns

    @property
    def point_bytes(self) -> int:
        """Bytes of two tiles' transformed inputs of one point."""
        return 16 * self.words

    @property
    def scratch_bytes(self) -> int:
        return POINTS * self.point_bytes + 8 * self.words * self.column_bytes


@cache
def emit(plan: WinogradPlan) -> Assembly:
    """The routine for all lines of tiles."""
    asm = Assembly()
    lines = -(-plan.target.shape[0] // TILE_ROWS)
    # Registers: r0 input, r1 output, r2 scratch, r12 the stream. Scratch holds the points, then the transformed
    # columns.
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}")
    asm.add("r3", "r12", plan.stream_bytes, "r4")
    asm.emit(f"strd r3, r12, [sp, #{FRAME_STREAM_END}]")
    asm.add("r3", "r2", POINTS * plan.point_bytes, "r4")
    asm.emit(f"strd r2, r3, [sp, #{FRAME_POINTS}]")
    asm.add("r0", "r0", plan.origin, "r3")
    asm.add("r2", "r1", plan.target.origin, "r3")
    asm.add("r3", "r0", (plan.target.shape[0] - TILE_ROWS) * plan.source.row_stride, "r4")
    asm.emit(f"str r3, [sp, #{FRAME_LAST_LINE}]")
    with asm.loop(lines, closing=("cmp r0, r3",), branch="bls"):
        asm.emit(f"strd r0, r2, [sp, #{FRAME_LINE_INPUT}]")
        _emit_column_transform(asm, plan)
        _emit_pairs(asm, plan)
        steps = (plan.source.row_stride, plan.target.row_stride)
        _emit_next(asm, lines, plan.target.shape[0], TILE_ROWS, FRAME_LINE_INPUT, FRAME_LAST_LINE, steps)
    asm.emit(f"add sp, sp, #{FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_next(
    asm: Assembly, trips: int, size: int, step: int, slot: int, last_slot: int, strides: tuple[int, int]
) -> None:
    """Advance the input and output pointers by `step`, or by less so that the last step ends with the tensor."""
    asm.emit(f"ldrd r0, r2, [sp, #{slot}]", f"ldr r3, [sp, #{last_slot}]")
    if trips == 1:
        return
    asm.add("r0", "r0", step * strides[0], "r4")
    asm.add("r2", "r2", step * strides[1], "r4")
    over = -size % step
    if over:
        asm.add("r4", "r3", over * strides[0], "r4")
        asm.emit("cmp r0, r4", "itt eq")
        asm.emit(f"subeq r0, r0, #{over * strides[0]}", f"subeq r2, r2, #{over * strides[1]}")


def _emit_column_transform(asm: Assembly, plan: WinogradPlan) -> None:
    """Transform four input rows down each column of the line. Registers: r0 input, r1 rows of transformed columns."""
    rows, step = plan.source.row_stride, plan.source.column_stride
    asm.comment("a line of tiles: four input rows transformed down each column")
    asm.emit(f"ldr r1, [sp, #{FRAME_COLUMNS}]")
    asm.add("r10", "r0", 4 * plan.words, "r3")
    with asm.loop(plan.words, closing=("cmp r0, r10",)):
        asm.add("r12", "r1", 4 * plan.columns, "r3")
        with asm.loop(plan.columns, closing=("cmp r1, r12",)):
            asm.emit(*(f"ldr r{5 - row}, [r0, #{row * rows}]" for row in (3, 2, 1)))
            asm.emit(f"ldr r5, [r0], #{step}" if step <= 255 else "ldr r5, [r0]")
            _emit_column(asm, plan, 0, ("", "r6", "r7", "r8", "r9"))
            _emit_column(asm, plan, 1, (", ror #8", "r5", "r4", "r3", "r2"))
            asm.emit("add r1, r1, #4")
            if step > 255:
                asm.add("r0", "r0", step, "r2")
        asm.add("r0", "r0", 4 - plan.columns * step, "r3")
        asm.add("r1", "r1", 7 * plan.column_bytes, "r3")


def _emit_column(asm: Assembly, plan: WinogradPlan, half: int, names: tuple[str, str, str, str, str]) -> None:
    """Transform two channels of a column. Its rows are in r5, r4, r3, r2 from the top."""
    rotation, d0, d1, d2, d3 = names
    asm.emit(*(f"sxtb16 {d}, r{5 - row}{rotation}" for row, d in enumerate((d0, d1, d2, d3))))
    asm.emit(f"ssub16 {d0}, {d0}, {d2}", f"ssub16 {d3}, {d1}, {d3}")
    asm.emit(f"sadd16 r11, {d1}, {d2}", f"ssub16 {d2}, {d2}, {d1}")
    offset = 4 * half * plan.column_bytes
    for row, value in ((1, "r11"), (2, d2), (3, d3)):
        asm.emit(f"str {value}, [r1, #{offset + row * plan.column_bytes}]")
    asm.emit(f"str {d0}, [r1, #{offset}]")


def _emit_pairs(asm: Assembly, plan: WinogradPlan) -> None:
    """Code for all pairs of tiles of a line. Pointers advance over the transformed columns and the output."""
    width = plan.target.shape[1]
    pairs = -(-width // PAIR_COLUMNS)
    steps = (4, plan.target.column_stride)
    asm.emit(f"ldr r0, [sp, #{FRAME_COLUMNS}]", f"ldr r2, [sp, #{FRAME_LINE_OUTPUT}]")
    asm.add("r3", "r0", 4 * (width - PAIR_COLUMNS), "r4")
    asm.emit(f"str r3, [sp, #{FRAME_LAST_PAIR}]")
    with asm.loop(pairs, closing=("cmp r0, r3",), branch="bls"):
        asm.emit(f"strd r0, r2, [sp, #{FRAME_PAIR_INPUT}]", f"str r2, [sp, #{FRAME_OUTPUT}]")
        _emit_row_transform(asm, plan)
        asm.emit(f"ldr r1, [sp, #{FRAME_STREAM}]")
        blocks = plan.target.shape[2] // 2
        with asm.loop(blocks, closing=(f"ldr r2, [sp, #{FRAME_STREAM_END}]", "cmp r1, r2")):
            _emit_block(asm, plan)
        _emit_next(asm, pairs, width, PAIR_COLUMNS, FRAME_PAIR_INPUT, FRAME_LAST_PAIR, steps)


def _emit_row_transform(asm: Assembly, plan: WinogradPlan) -> None:
    """Transform six columns to four points of two tiles, for each row and channel pair: r0 columns, r1 points."""
    asm.comment("two tiles: six transformed columns to four points of each, across")
    asm.emit(f"ldr r1, [sp, #{FRAME_POINTS}]")
    asm.add("r10", "r1", plan.point_bytes, "r3")
    near = 15 * plan.point_bytes <= PAIR_REACH
    with asm.loop(2 * plan.words, closing=("cmp r1, r10",)):
        for row in range(4):
            asm.emit("ldmia r0, {r2-r7}")
            asm.add("r0", "r0", plan.column_bytes, "r8")
            _emit_points(asm, plan, 4 * row * plan.point_bytes if near else 0)
            if not near:
                asm.add("r1", "r1", 4 * plan.point_bytes, "r8")
        asm.add("r1", "r1", 8 - (0 if near else POINTS * plan.point_bytes), "r8")


def _emit_points(asm: Assembly, plan: WinogradPlan, offset: int) -> None:
    """Columns 0..3 in r2..r5 give the first tile's points, columns 2..5 the second tile's."""
    place = {point: offset + index * plan.point_bytes for index, point in enumerate(POINT_ORDER)}
    asm.emit("ssub16 r2, r2, r4", "ssub16 r8, r4, r6", f"strd r2, r8, [r1, #{place[0]}]")
    asm.emit("sadd16 r8, r3, r4", "sadd16 r9, r5, r6", f"strd r8, r9, [r1, #{place[1]}]")
    asm.emit("ssub16 r8, r4, r3", "ssub16 r9, r6, r5", f"strd r8, r9, [r1, #{place[2]}]")
    asm.emit("ssub16 r3, r3, r5", "ssub16 r5, r5, r7", f"strd r3, r5, [r1, #{place[3]}]")


def _emit_block(asm: Assembly, plan: WinogradPlan) -> None:
    """Code for two output channels of a pair of tiles. r1 advances over the stream."""
    asm.emit(f"ldr r0, [sp, #{FRAME_POINTS}]")
    if plan.looped:
        _emit_loop_of_rows(asm, plan)
    else:
        for row in range(4):
            _emit_row(asm, plan, row)
    for channel in (0, 1):
        _emit_results(asm, plan, channel)
    asm.emit("add r12, r12, #2", f"str r12, [sp, #{RESULT_BYTES + FRAME_OUTPUT}]")
    asm.emit(f"add sp, sp, #{RESULT_BYTES}")


def _emit_row(asm: Assembly, plan: WinogradPlan, row: int) -> None:
    """Code for a row of four points. Pushes the two results of the transformation across, the right one first."""
    asm.comment(f"two channels of two tiles: the points of row {row}, transformed back across")
    if row == 1:
        asm.emit("ldmia r1!, {r2, r4}")
    _emit_products(asm, plan, _SUMS, _OTHERS, first="bias" if row == 1 else "zero")
    asm.emit("push {r2-r5}")
    _emit_products(asm, plan, _SUMS, _OTHERS)
    asm.emit("ldmia sp, {r6-r9}", "stmia sp, {r2-r5}")
    _emit_difference(asm)
    _emit_products(asm, plan, _SUMS, _OTHERS)
    asm.emit("ldmia sp, {r6-r9}", "stmia sp, {r2-r5}")
    _emit_products(asm, plan, _OTHERS, _SUMS)
    asm.emit("push {r6-r9}")


def _emit_loop_of_rows(asm: Assembly, plan: WinogradPlan) -> None:
    """Code for all rows as a loop. The frame, instead of the stack pointer, has the address of the last results."""
    pointer, end = (f"[sp, #{RESULT_BYTES + slot}]" for slot in (FRAME_RESULTS, FRAME_COLUMNS))
    load = f"ldr r10, {pointer}"
    asm.emit(f"sub sp, sp, #{RESULT_BYTES}", f"add r10, sp, #{RESULT_BYTES}", f"str r10, {pointer}")
    with asm.loop(4, closing=(f"ldr r3, {end}", "cmp r0, r3")):
        asm.comment("two channels of two tiles: the points of a row, transformed back across")
        asm.emit("ldmia r1!, {r2, r4}")
        _emit_products(asm, plan, _SUMS, _OTHERS, first="bias")
        asm.emit(load, "stmdb r10, {r2-r5}")
        _emit_products(asm, plan, _SUMS, _OTHERS)
        asm.emit(load, "ldmdb r10, {r6-r9}", "stmdb r10, {r2-r5}")
        _emit_difference(asm)
        _emit_products(asm, plan, _SUMS, _OTHERS)
        asm.emit(load, "ldmdb r10, {r6-r9}", "stmdb r10, {r2-r5}")
        _emit_products(asm, plan, _OTHERS, _SUMS)
        asm.emit(load, "sub r10, r10, #16", "stmdb r10!, {r6-r9}", f"str r10, {pointer}")


def _emit_difference(asm: Assembly) -> None:
    asm.emit(*(f"rsb {s}, {s}, {o}, lsl #1" for s, o in zip(_SUMS, _OTHERS, strict=True)))


def _emit_products(
    asm: Assembly, plan: WinogradPlan, sums: tuple[str, ...], x: tuple[str, ...], *, first: str = "go on"
) -> None:
    """Products of one point, for two tiles and two channels. Sums: per channel the first tile, then the second."""
    for index in range(plan.words):
        asm.emit(f"ldmia r0!, {{{', '.join(x)}}}", f"ldmia r1!, {{{', '.join(_WEIGHTS)}}}")
        for half in (0, 1):
            start = first if index == half == 0 else "go on"
            for channel in (0, 1):
                w = _WEIGHTS[2 * half + channel]
                for tile in (1, 0):
                    total, value = sums[2 * channel + tile], x[2 * half + tile]
                    addend = {"go on": total, "bias": sums[2 * channel]}.get(start)
                    asm.emit(f"smlad {total}, {value}, {w}, {addend}" if addend else f"smuad {total}, {value}, {w}")


def _emit_results(asm: Assembly, plan: WinogradPlan, channel: int) -> None:
    """The transformation down, requantisation and stores of the 2x4 outputs of one channel."""
    asm.comment(f"channel {channel} of the two: transformed back down, times the multiplier, to 8 bits, stored")
    _emit_down(asm, channel, 0, (("r2", "r3"), ("r4", "r5")))
    _emit_down(asm, channel, 1, (("r6", "r7"), ("r8", "r9")))
    results = ("r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9")
    if plan.ties:
        asm.emit("ldmia r1!, {r10-r12}")
        for result in results:
            asm.emit(f"and lr, r10, {result}, asr #31", "sub lr, r12, lr", f"smmla {result}, {result}, r11, lr")
    else:
        asm.emit("ldmia r1!, {r10, r11}", *(f"smmla {result}, {result}, r10, r11" for result in results))
    asm.emit(*(f"ssat {result}, #8, {result}, asr #{plan.exponent}" for result in results))
    asm.emit(f"ldr r12, [sp, #{RESULT_BYTES + FRAME_OUTPUT}]")
    for result, offset in zip(results, store_offsets(plan.target), strict=True):
        asm.emit(f"strb {result}, [r12, #{offset + channel}]")


def store_offsets(target: Layout) -> list[int]:
    """Offsets of the results r2..r9: for each column of a tile, the upper row of both tiles, then the lower row."""
    return [
        row * target.row_stride + (2 * tile + column) * target.column_stride
        for column in (0, 1)
        for row in (0, 1)
        for tile in (0, 1)
    ]


def _emit_down(asm: Assembly, channel: int, column: int, results: tuple[tuple[str, str], tuple[str, str]]) -> None:
    """The sum of rows 0, 1 and 2, and row 1 less rows 2 and 3, for both tiles."""
    upper, lower = results
    for row, pair in enumerate((upper, ("r10", "r11"), ("r12", "lr"), lower)):
        asm.emit(f"ldrd {pair[0]}, {pair[1]}, [sp, #{16 * (2 * (3 - row) + column) + 8 * channel}]")
    for tile, (one, two) in enumerate((("r10", "r12"), ("r11", "lr"))):
        asm.emit(f"add {one}, {one}, {two}", f"sub {two}, {one}, {two}, lsl #1")
        asm.emit(f"add {upper[tile]}, {upper[tile]}, {one}", f"sub {lower[tile]}, {two}, {lower[tile]}")
