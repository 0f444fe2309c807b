"""The assembly of a dense layer: inputs are widened once, then four outputs are computed at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.code.stream import BYTE_BITS

ACCUMULATORS = ("r2", "r3", "r4", "r5")
INPUTS = ("r6", "r7", "r8", "r9")
WEIGHTS = ("r10", "r11", "r12", "lr")
STEP = 8
FRAME_OUTPUT, FRAME_SHARED, FRAME_STREAM_END, FRAME_INPUTS_END, FRAME_INPUTS, FRAME_BYTES = 0, 4, 16, 20, 24, 28
"""Offsets in the stack frame, and its size. `FRAME_SHARED`: multiplier, addend and tie of all channels, directly after
the output pointer: one load brings all four."""


@dataclass(frozen=True)
class DensePlan:
    """Parameters of the emitter. `shared`: constants stand once before the stream. `rounded`: the shared constants are
    for SMMLAR, which rounds, with a tie step of 1."""

    inputs: int
    outputs: int
    density: Density
    exponent: int
    ties: bool
    shared: bool
    rounded: bool
    left_shift: bool
    blocks_unrolled: int
    steps_unrolled: int

    @property
    def steps(self) -> int:
        return -(-self.inputs // STEP)

    @property
    def blocks(self) -> int:
        return -(-self.outputs // 4)

    @property
    def rounds(self) -> int:
        return self.outputs // 4 // self.blocks_unrolled

    @property
    def block_bytes(self) -> int:
        weights = self.steps * STEP * 4 * self.density.value // 8
        shifts = 4 * (self.density is Density.BYTES)
        return weights + 16 + (0 if self.shared else 4 * (8 + 4 * self.ties + shifts))


@cache
def emit(plan: DensePlan) -> Assembly:
    """The routine for all outputs."""
    asm = Assembly()
    # Registers: r0 input, r1 output, r2 scratch, r12 the stream.
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}")
    if plan.shared:
        asm.emit("ldmia r12!, {r4-r6}", f"strd r4, r5, [sp, #{FRAME_SHARED}]", f"str r6, [sp, #{FRAME_SHARED + 8}]")
    asm.add("r3", "r12", plan.rounds * plan.blocks_unrolled * plan.block_bytes, "r4")
    asm.emit(f"str r1, [sp, #{FRAME_OUTPUT}]", f"str r3, [sp, #{FRAME_STREAM_END}]", "mov r1, r12")
    asm.add("r3", "r2", 2 * STEP * plan.steps, "r4")
    asm.emit(f"strd r3, r2, [sp, #{FRAME_INPUTS_END}]")
    _emit_widening(asm, plan)
    asm.emit(f"ldr r0, [sp, #{FRAME_INPUTS}]")
    if plan.rounds:
        closing = (f"ldr r7, [sp, #{FRAME_STREAM_END}]", "cmp r1, r7")
        with asm.loop(plan.rounds, closing=closing):
            for index in range(plan.blocks_unrolled):
                _emit_block(asm, plan, index)
                _emit_stores(asm, 4, 4 * index, plan, advances=index == plan.blocks_unrolled - 1)
    looped = plan.rounds * plan.blocks_unrolled
    for index in range(plan.blocks - looped):
        _emit_block(asm, plan, index)
        _emit_stores(asm, min(plan.outputs - 4 * (looped + index), 4), 4 * index, plan, advances=False)
    asm.emit(f"add sp, sp, #{FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_widening(asm: Assembly, plan: DensePlan) -> None:
    """Widen inputs from r0 to halfwords at r2, the even and the odd bytes of each word in separate words."""
    words = -(-plan.inputs // 4)
    rounds = words // 4
    asm.comment(f"{plan.inputs} inputs to scratch, as halfwords")
    if rounds > 1:
        asm.add("r12", "r2", 32 * rounds, "r12")
    if rounds:
        with asm.loop(rounds, closing=("cmp r2, r12",)):
            asm.emit("ldmia r0!, {r4, r6, r8, r10}")
            for even, odd in (("r4", "r5"), ("r6", "r7"), ("r8", "r9"), ("r10", "r11")):
                asm.emit(f"sxtb16 {odd}, {even}, ror #8", f"sxtb16 {even}, {even}")
            asm.emit("stmia r2!, {r4-r11}")
    for _ in range(words % 4):
        asm.emit("ldr r4, [r0], #4", "sxtb16 r5, r4, ror #8", "sxtb16 r4, r4", "stmia r2!, {r4, r5}")


def _emit_block(asm: Assembly, plan: DensePlan, index: int) -> None:
    asm.comment("four outputs: biases, products")
    first = WEIGHTS if plan.density is Density.HALFWORDS else ()
    asm.emit(f"ldmia r1!, {{{', '.join((*ACCUMULATORS, *first))}}}")
    _emit_products(asm, plan, backwards=index % 2 == 1)
    asm.comment("times the multipliers, to 8 bits")
    if plan.density is Density.BYTES:
        _emit_separation(asm, plan)
    if plan.shared:
        _emit_shared_requantization(asm, plan)
    elif plan.ties:
        for pair in (ACCUMULATORS[:2], ACCUMULATORS[2:]):
            asm.emit("ldmia r1!, {r6-r11}")
            for a, factor, addend, tie in zip(pair, ("r6", "r7"), ("r8", "r9"), ("r10", "r11"), strict=True):
                asm.emit(f"smmla {a}, {a}, {factor}, {_tie_corrected(asm, a, addend, tie)}")
    else:
        asm.emit("ldmia r1!, {r6-r12, lr}")
        addends = ("r10", "r11", "r12", "lr")
        asm.emit(*(f"smmla {a}, {a}, {m}, {c}" for a, m, c in zip(ACCUMULATORS, INPUTS, addends, strict=True)))
    asm.emit(*(f"ssat {a}, #8, {a}, asr #{plan.exponent}" for a in ACCUMULATORS))


def _emit_products(asm: Assembly, plan: DensePlan, *, backwards: bool) -> None:
    rounds, unrolled = _step_rounds(plan)
    end = FRAME_INPUTS if backwards else FRAME_INPUTS_END
    with asm.loop(rounds, closing=(f"ldr r6, [sp, #{end}]", "cmp r0, r6")):
        for step in range(unrolled):
            asm.emit(f"{'ldmdb' if backwards else 'ldmia'} r0!, {{{', '.join(INPUTS)}}}")
            if plan.density is Density.BYTES:
                _emit_step8(asm)
            else:
                _emit_step16(asm, last=rounds == 1 and step == unrolled - 1)
    if plan.density is Density.HALFWORDS and rounds > 1:
        asm.emit(f"sub r1, r1, #{4 * len(WEIGHTS)}")


def _step_rounds(plan: DensePlan) -> tuple[int, int]:
    unrolled = max(u for u in range(1, plan.steps_unrolled + 1) if plan.steps % u == 0)
    return plan.steps // unrolled, unrolled


def _emit_step16(asm: Assembly, *, last: bool) -> None:
    """Products of four words of inputs. The weights of the first word are already loaded; every step but the last loads
    the first weights of the next. Registers of used inputs take further weights: three loads bring sixteen words."""
    spare, another = INPUTS[:2]
    pairs = iter([(x, a) for x in INPUTS for a in ACCUMULATORS])
    _emit_sums(asm, WEIGHTS, pairs)
    for loaded in ((spare, *WEIGHTS), (spare, another, *WEIGHTS), (spare,) if last else (spare, *WEIGHTS)):
        asm.emit(f"ldmia r1!, {{{', '.join(loaded)}}}")
        _emit_sums(asm, loaded, pairs)


def _emit_sums(asm: Assembly, weights: Sequence[str], pairs: Iterator[tuple[str, str]]) -> None:
    """One product per weight."""
    for w, (x, a) in zip(weights, pairs, strict=False):
        asm.emit(f"smlad {a}, {x}, {w}, {a}")


def _emit_step8(asm: Assembly) -> None:
    """Products for sums of 256 * first + second in one accumulator of a pair, and of second alone in the other."""
    for two in (0, 2):
        asm.emit(f"ldmia r1!, {{{', '.join(WEIGHTS)}}}")
        for half in (0, 1):
            x = INPUTS[two + half]
            for pair in (0, 1):
                w, both, second = WEIGHTS[2 * half + pair], ACCUMULATORS[2 * pair], ACCUMULATORS[2 * pair + 1]
                asm.emit(f"smlad {both}, {x}, {w}, {both}", f"sxtb16 {w}, {w}", f"smlad {second}, {x}, {w}, {second}")


def _emit_separation(asm: Assembly, plan: DensePlan) -> None:
    """Separate and prescale the two sums of each pair."""
    asm.emit("sub r2, r2, r3", "sub r4, r4, r5")
    if plan.shared:
        asm.emit(f"lsl r3, r3, #{BYTE_BITS}", f"lsl r5, r5, #{BYTE_BITS}")
        return
    first = "lsl" if plan.left_shift else "asr"
    asm.emit("ldmia r1!, {r6-r9}", f"{first} r2, r2, r6", "lsl r3, r3, r7", f"{first} r4, r4, r8", "lsl r5, r5, r9")


def _emit_shared_requantization(asm: Assembly, plan: DensePlan) -> None:
    asm.emit("ldmia sp, {r6-r9}" if plan.ties and not plan.rounded else "ldmia sp, {r6-r8}")
    for accumulator in ACCUMULATORS:
        if plan.rounded:
            asm.emit(f"add r12, r8, {accumulator}, asr #31", f"smmlar {accumulator}, {accumulator}, r7, r12")
            continue
        addend = _tie_corrected(asm, accumulator, "r8", "r9") if plan.ties else "r8"
        asm.emit(f"smmla {accumulator}, {accumulator}, r7, {addend}")


def _tie_corrected(asm: Assembly, accumulator: str, addend: str, tie: str) -> str:
    asm.emit(f"and r12, {tie}, {accumulator}, asr #31", f"sub r12, {addend}, r12")
    return "r12"


def _emit_stores(asm: Assembly, count: int, offset: int, plan: DensePlan, *, advances: bool) -> None:
    if not plan.shared:
        asm.emit(f"ldr r6, [sp, #{FRAME_OUTPUT}]")
    for channel in reversed(range(count)):
        asm.emit(f"strb {ACCUMULATORS[channel]}, [r6, #{offset + channel}]")
    if advances:
        asm.emit(f"add r6, r6, #{4 * plan.blocks_unrolled}", f"str r6, [sp, #{FRAME_OUTPUT}]")
