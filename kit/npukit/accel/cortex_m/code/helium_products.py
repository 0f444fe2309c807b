"""The assembly of convolutions and dense layers for Helium: VMLADAVA adds 16 products to a sum in a core register.

Four output channels of one or two pixels share each loaded vector of inputs and of weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.convolution_code import PairWalk
from npukit.accel.cortex_m.code.helium import CHUNK, LANES, REACH, emit_entry, emit_return, emit_scaled, emit_store

FRAME_BYTES = 16
_STREAM, _PAIRS, _LINES = 0, 4, 8
_INPUTS = ("r1", "r3")
_SUMS = (("r0", "r2", "r4", "r6"), ("r8", "r10", "r12", "lr"))
"""VMLADAVA needs even registers. Odd registers: r5 stream, r7 output, r9 rounds, r11 remaining channels."""
_LIMITS = ("q5", "q6", "q7")


@dataclass(frozen=True)
class ProductsPlan:
    """Parameters of the emitter. `chunks`: offsets of the chunks of 16 inputs in a window. `unrolled`: chunks per pass
    of the loop, a divisor of their number. The steps between chunks repeat in each pass."""

    walk: PairWalk
    chunks: tuple[int, ...]
    channels: int
    left: bool
    ties: bool
    input_origin: int
    output_origin: int
    unrolled: int

    @property
    def pixels(self) -> int:
        """Pixels computed together."""
        return min(self.walk.pixels, 2)

    @property
    def blocks(self) -> int:
        return -(-self.channels // LANES)


def unrollings(chunks: tuple[int, ...]) -> Iterator[int]:
    """Numbers of chunks after which the offsets repeat at a constant distance."""
    for count in range(1, len(chunks) + 1):
        steps = {later - chunk for chunk, later in zip(chunks, chunks[count:], strict=False)}
        if len(chunks) % count == 0 and len(steps) <= 1:
            yield count


@cache
def emit(plan: ProductsPlan) -> Assembly:
    """Registers: r0 input, r1 output, r12 the constants: limits, then the stream of each block of channels."""
    asm, walk = Assembly(), plan.walk
    emit_entry(asm, FRAME_BYTES)
    asm.emit("ldmia r12!, {r4-r6}", *(f"vdup.32 {q}, {r}" for q, r in zip(_LIMITS, ("r4", "r5", "r6"), strict=True)))
    asm.emit(f"str r12, [sp, #{_STREAM}]")
    asm.add("r7", "r1", plan.output_origin, "r2")
    asm.add("r1", "r0", plan.input_origin, "r2")
    _count(asm, walk.lines, _LINES)
    with asm.loop(walk.lines, closing=_counted(_LINES)):
        _count(asm, walk.pairs, _PAIRS)
        with asm.loop(walk.pairs, closing=_pair_counted(walk)):
            _emit_pair(asm, plan)
        odd = plan.pixels * walk.pairs - walk.pixels if walk.pairs > 1 else 0
        moved = plan.pixels * walk.pairs - odd
        if walk.lines > 1:
            asm.add("r1", "r1", walk.input_line - moved * walk.input_step, "r2")
            asm.add("r7", "r7", walk.output_line - moved * walk.output_step, "r2")
    emit_return(asm, FRAME_BYTES)
    return asm


def _count(asm: Assembly, times: int, place: int) -> None:
    if times > 1:
        asm.constant("r2", times)
        asm.emit(f"str r2, [sp, #{place}]")


def _counted(place: int) -> tuple[str, ...]:
    return f"ldr r2, [sp, #{place}]", "subs r2, #1", f"str r2, [sp, #{place}]"


def _pair_counted(walk: PairWalk) -> tuple[str, ...]:
    """The closing instructions of the loop over pairs. The last pair of an odd line begins one pixel earlier."""
    if walk.pixels % 2 == 0:
        return _counted(_PAIRS)
    steps = (f"subeq r1, r1, #{walk.input_step}", f"subeq r7, r7, #{walk.output_step}")
    return *_counted(_PAIRS), "cmp r2, #1", "itt eq", *steps, "cmp r2, #0"


def _emit_pair(asm: Assembly, plan: ProductsPlan) -> None:
    """Code for all channels of one pixel or two. The pointers advance to the next pixels."""
    walk, tail = plan.walk, plan.channels % LANES
    asm.emit(f"ldr r5, [sp, #{_STREAM}]")
    if plan.pixels > 1:
        asm.add("r3", "r1", walk.input_step, "r2")
    if plan.blocks > 1 or tail:
        asm.constant("r11", plan.channels)
    with asm.loop(plan.blocks, closing=(f"subs r11, r11, #{LANES}",), branch="bgt"):
        _emit_block(asm, plan)
    if walk.pairs > 1 or walk.lines > 1:
        asm.add("r1", "r1", plan.pixels * walk.input_step, "r2")
        asm.add("r7", "r7", plan.pixels * walk.output_step - plan.blocks * LANES, "r2")


def _emit_block(asm: Assembly, plan: ProductsPlan) -> None:
    asm.comment(f"{LANES} channels of {plan.pixels} pixels: sums from the biases on")
    first, second = _SUMS
    asm.emit(f"ldmia r5!, {{{', '.join(first)}}}")
    if plan.pixels > 1:
        asm.emit(*(f"mov {other}, {one}" for other, one in zip(second, first, strict=True)))
    _emit_chunks(asm, plan)
    asm.emit(*(f"vldrw.u32 {q}, [r5], #{CHUNK}" for q in ("q2", "q3", "q4")[: 2 + plan.left]))
    factors = ("q2", "q3", "q4" if plan.left else None)
    left = "r11" if plan.channels % LANES else None
    for pixel in range(plan.pixels):
        a, b, c, d = _SUMS[pixel]
        asm.emit(f"vmov q0[2], q0[0], {a}, {c}", f"vmov q0[3], q0[1], {b}, {d}")
        emit_scaled(asm, "q0", factors, "q1" if plan.ties else None)
        asm.emit("vadd.i32 q0, q0, q7", "vmax.s32 q0, q0, q5", "vmin.s32 q0, q0, q6")
        place = _other_place(asm, plan) if pixel else f"[r7], #{LANES}"
        emit_store(asm, f"vstrb.32 q0, {place}", 32, left)


def _other_place(asm: Assembly, plan: ProductsPlan) -> str:
    """The address of the second pixel's channels, after the output pointer has passed the first pixel's."""
    distance = plan.walk.output_step - LANES
    if abs(distance) <= REACH:
        return f"[r7, #{distance}]"
    asm.add("r0", "r7", distance, "r2")
    return "[r0]"


def _emit_chunks(asm: Assembly, plan: ProductsPlan) -> None:
    """Code for all products of a block. The input pointers are unchanged at the end."""
    chunks, unrolled = plan.chunks, plan.unrolled
    rounds = len(chunks) // unrolled
    if rounds > 1:
        asm.constant("r9", rounds)
    behind = chunks[unrolled] if rounds > 1 else chunks[0]
    with asm.loop(rounds, closing=("subs r9, r9, #1",)):
        for chunk, following in zip(chunks[:unrolled], (*chunks[1:unrolled], behind), strict=True):
            _emit_chunk(asm, plan, following - chunk)
    if rounds > 1:
        for pointer in _INPUTS[: plan.pixels]:
            asm.add(pointer, pointer, rounds * (chunks[0] - behind), "r9")


def _emit_chunk(asm: Assembly, plan: ProductsPlan, step: int) -> None:
    """Products of 16 inputs of each pixel with the weights of four channels."""
    near = abs(step) <= REACH
    for pixel, pointer in enumerate(_INPUTS[: plan.pixels]):
        asm.emit(f"vldrb.u8 q{pixel}, [{pointer}]" + (f", #{step}" if near else ""))
    for lane in range(LANES):
        weights = f"q{2 + lane % 3}"
        asm.emit(f"vldrw.u32 {weights}, [r5], #{CHUNK}")
        asm.emit(*(f"vmladava.s8 {_SUMS[pixel][lane]}, q{pixel}, {weights}" for pixel in range(plan.pixels)))
    if not near:
        for pointer in _INPUTS[: plan.pixels]:
            asm.add(pointer, pointer, step, "r9")
