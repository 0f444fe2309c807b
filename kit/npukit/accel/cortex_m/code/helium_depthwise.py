"""The assembly of depthwise convolutions on pixels for Helium: 16 channels at a time, one pointer per tap.

Products of bytes have 16 bits. The sum of two products fits 16 bits too; it is then added to sums of 32 bits. Even and
odd channels are in separate vectors (VMULLB, VMULLT), and the even and odd ones of each again (VMOVLB, VMOVLT).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.convolution_code import PairWalk
from npukit.accel.cortex_m.code.helium import CHUNK, emit_entry, emit_return, emit_scaled, emit_store

FRAME_BYTES = 8
MOST_TAPS = 9
CHANNEL_ORDER = (*range(0, CHUNK, 4), *range(2, CHUNK, 4), *range(1, CHUNK, 4), *range(3, CHUNK, 4))
"""The channels of the four vectors of sums."""
_STREAM, _LINES = 0, 4
_SUMS = ("q4", "q5", "q6", "q7")
_NEXT = f"#{CHUNK}"


@dataclass(frozen=True)
class HeliumDepthwisePlan:
    """Parameters of the emitter. `taps`: offsets of the window's pixels."""

    walk: PairWalk
    taps: tuple[int, ...]
    channels: int
    left: bool
    ties: bool
    input_origin: int
    output_origin: int

    @property
    def blocks(self) -> int:
        return -(-self.channels // CHUNK)

    @property
    def pointers(self) -> tuple[str, ...]:
        return tuple(f"r{tap}" for tap in range(len(self.taps)))


@cache
def emit(plan: HeliumDepthwisePlan) -> Assembly:
    """Registers at entry: r0 input, r1 output, r12 the constants: the zero point, then the stream of each block of
    channels.

    Afterwards r9 is the stream, r10 the output, r11 counts channels, r12 pixels, lr is the output's zero point.
    """
    asm, walk = Assembly(), plan.walk
    emit_entry(asm, FRAME_BYTES)
    asm.emit("ldr lr, [r12], #4", f"str r12, [sp, #{_STREAM}]")
    asm.add("r10", "r1", plan.output_origin, "r11")
    for pointer, tap in reversed(list(zip(plan.pointers, plan.taps, strict=True))):
        asm.add(pointer, "r0", plan.input_origin + tap, "r11")
    if walk.lines > 1:
        asm.constant("r12", walk.lines)
    closing = (f"ldr r12, [sp, #{_LINES}]", "subs r12, r12, #1")
    with asm.loop(walk.lines, closing=closing):
        if walk.lines > 1:
            asm.emit(f"str r12, [sp, #{_LINES}]")
        asm.constant("r12", walk.pixels)
        with asm.loop(walk.pixels, closing=("subs r12, r12, #1",)):
            _emit_pixel(asm, plan)
        _move(asm, plan, walk.input_line - walk.pixels * walk.input_step, plan.pointers)
        _move(asm, plan, walk.output_line - walk.pixels * walk.output_step, ("r10",))
    emit_return(asm, FRAME_BYTES)
    return asm


def _move(asm: Assembly, plan: HeliumDepthwisePlan, distance: int, pointers: tuple[str, ...]) -> None:
    for pointer in pointers:
        asm.add(pointer, pointer, distance, "r9")


def _emit_pixel(asm: Assembly, plan: HeliumDepthwisePlan) -> None:
    """Code for all channels of a pixel. The pointers advance to the next pixel."""
    asm.emit(f"ldr r9, [sp, #{_STREAM}]")
    asm.constant("r11", plan.channels)
    branch = "bgt" if plan.channels % CHUNK else "bne"
    with asm.loop(plan.blocks, closing=(f"subs r11, r11, {_NEXT}",), branch=branch):
        asm.comment(f"{CHUNK} channels: sums from the biases on")
        asm.emit(*(f"vldrw.u32 {sums}, [r9], {_NEXT}" for sums in _SUMS))
        for first in range(0, len(plan.taps), 2):
            _emit_taps(asm, plan.pointers[first : first + 2])
        for sums in _SUMS:
            asm.emit(*(f"vldrw.u32 {q}, [r9], {_NEXT}" for q in ("q0", "q1", "q2")[: 2 + plan.left]))
            emit_scaled(asm, sums, ("q0", "q1", "q2" if plan.left else None), "q3" if plan.ties else None)
            asm.emit(f"vadd.i32 {sums}, {sums}, lr")
        asm.emit("vqmovnb.s32 q4, q4", "vqmovnt.s32 q4, q5", "vqmovnb.s32 q6, q6", "vqmovnt.s32 q6, q7")
        asm.emit("vqmovnb.s16 q4, q4", "vqmovnt.s16 q4, q6")
        emit_store(asm, f"vstrb.8 q4, [r10], {_NEXT}", 8, "r11" if plan.channels % CHUNK else None)
    _move(asm, plan, plan.walk.input_step - plan.blocks * CHUNK, plan.pointers)
    _move(asm, plan, plan.walk.output_step - plan.blocks * CHUNK, ("r10",))


def _emit_taps(asm: Assembly, pointers: tuple[str, ...]) -> None:
    """Add the products of one tap or two to the sums."""
    first, *second = pointers
    asm.emit(f"vldrb.u8 q0, [{first}], {_NEXT}", f"vldrw.u32 q1, [r9], {_NEXT}")
    asm.emit("vmullb.s8 q2, q0, q1", "vmullt.s8 q3, q0, q1")
    for pointer in second:
        asm.emit(f"vldrb.u8 q0, [{pointer}], {_NEXT}", "vldrw.u32 q1, [r9]")
        asm.emit("vmullb.s8 q1, q0, q1", "vadd.i16 q2, q2, q1", f"vldrw.u32 q1, [r9], {_NEXT}")
        asm.emit("vmullt.s8 q1, q0, q1", "vadd.i16 q3, q3, q1")
    for products, sums in (("q2", _SUMS[:2]), ("q3", _SUMS[2:])):
        for widened, total in zip(("b", "t"), sums, strict=True):
            asm.emit(f"vmovl{widened}.s16 q0, {products}", f"vadd.i32 {total}, {total}, q0")
