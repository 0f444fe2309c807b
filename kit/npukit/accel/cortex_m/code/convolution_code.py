"""The assembly of a convolution: gathers each pair of pixels, then computes all channels in 2x2 blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.block import (
    FRAME_OUTPUT,
    FRAME_PIXELS,
    FRAME_PIXELS_END,
    FRAME_STREAM_END,
    BlockShape,
    Unrolling,
    emit_blocks,
    looped_stream_bytes,
)
from npukit.accel.cortex_m.code.gather import Gather, emit_gather

FRAME_STREAM, FRAME_INPUT, FRAME_PAIR_OUTPUT, FRAME_LAST_PAIR, FRAME_LINE_INPUT = range(16, 36, 4)
FRAME_LINE_OUTPUT, FRAME_LINES_END, FRAME_BYTES = 36, 40, 44
"""Offsets in the stack frame behind the offsets of `block.py`, and the frame's size."""


@dataclass(frozen=True)
class PairWalk:
    """Pixel pairs along lines: counts, and byte steps of input and output. An odd line's last pair overlaps."""

    lines: int
    pixels: int
    input_step: int
    output_step: int
    input_line: int
    output_line: int

    @property
    def pairs(self) -> int:
        return (self.pixels + 1) // 2


@dataclass(frozen=True)
class ConvolutionPlan:
    """Parameters of the emitter."""

    walk: PairWalk
    gather: Gather
    shape: BlockShape
    input_origin: int
    output_origin: int


@cache
def emit(plan: ConvolutionPlan, unrolling: Unrolling) -> Assembly:
    """The routine for all lines of pixel pairs."""
    asm = Assembly()
    _emit_prologue(asm, plan, unrolling)
    with asm.loop(plan.walk.lines, closing=(f"ldr r3, [sp, #{FRAME_LINES_END}]", "cmp r0, r3")):
        _emit_line(asm, plan, unrolling)
    asm.emit(f"add sp, sp, #{FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_prologue(asm: Assembly, plan: ConvolutionPlan, unrolling: Unrolling) -> None:
    """Registers: r0 input, r1 output, r2 scratch, r12 the stream. Output pointers are one channel before the first."""
    walk = plan.walk
    asm.comment("r0 input, r1 output, r2 scratch, r12 weights and constants in the order of reading")
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}", f"str r12, [sp, #{FRAME_STREAM}]")
    asm.add("r3", "r12", looped_stream_bytes(plan.shape, unrolling), "r4")
    asm.emit(f"str r3, [sp, #{FRAME_STREAM_END}]")
    asm.add("r3", "r2", 4 * plan.shape.depth, "r4")
    asm.emit(f"strd r3, r2, [sp, #{FRAME_PIXELS_END}]")
    asm.add("r0", "r0", plan.input_origin, "r3")
    asm.add("r2", "r1", plan.output_origin - plan.shape.stores.channel_step, "r3")
    if walk.lines > 1:
        asm.add("r3", "r0", walk.lines * walk.input_line, "r4")
        asm.emit(f"str r3, [sp, #{FRAME_LINES_END}]")


def _emit_line(asm: Assembly, plan: ConvolutionPlan, unrolling: Unrolling) -> None:
    """Code for one line. r0 and r2 point to its beginning, and afterwards to the beginning of the next line."""
    walk = plan.walk
    if walk.lines > 1:
        asm.emit(f"strd r0, r2, [sp, #{FRAME_LINE_INPUT}]")
    asm.add("r3", "r0", (walk.pixels - 2) * walk.input_step, "r4")
    asm.emit(f"str r3, [sp, #{FRAME_LAST_PAIR}]", f"str r2, [sp, #{FRAME_OUTPUT}]")
    asm.emit(f"strd r0, r2, [sp, #{FRAME_INPUT}]")
    with asm.loop(walk.pairs, closing=(f"str r2, [sp, #{FRAME_OUTPUT}]", "cmp r0, r3"), branch="bls"):
        asm.comment(f"the window's {plan.gather.depth} inputs of two pixels to scratch, as halfwords")
        asm.emit(f"ldr r1, [sp, #{FRAME_PIXELS}]")
        emit_gather(asm, plan.gather)
        asm.comment("r0 the two pixels' inputs, r1 the stream")
        asm.emit(f"ldrd r0, r1, [sp, #{FRAME_PIXELS}]")
        emit_blocks(asm, plan.shape, unrolling)
        _emit_next_pair(asm, walk)
    if walk.lines > 1:
        asm.emit(f"ldrd r0, r2, [sp, #{FRAME_LINE_INPUT}]")
        asm.add("r0", "r0", walk.input_line, "r3")
        asm.add("r2", "r2", walk.output_line, "r3")


def _emit_next_pair(asm: Assembly, walk: PairWalk) -> None:
    if walk.pairs == 1:
        return
    asm.comment("the next two pixels" + ", the last ones again the one before" * (walk.pixels % 2))
    asm.emit(f"ldrd r0, r2, [sp, #{FRAME_INPUT}]", f"ldr r3, [sp, #{FRAME_LAST_PAIR}]")
    asm.add("r0", "r0", 2 * walk.input_step, "r4")
    asm.add("r2", "r2", 2 * walk.output_step, "r4")
    if walk.pixels % 2:
        asm.emit("cmp r0, r3", "itt hi")
        asm.emit(f"subhi r0, r0, #{walk.input_step}", f"subhi r2, r2, #{walk.output_step}")
    asm.emit(f"strd r0, r2, [sp, #{FRAME_INPUT}]")
