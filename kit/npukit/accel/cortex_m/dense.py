"""Matrix-vector products, four output channels at a time.

Layers with one multiplier keep it in the frame, which leaves nothing but weights and biases in the stream.
Blocks alternate between reading the inputs forwards and backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from npukit.accel.cortex_m.assembly import BYTE_WORTH, Assembly
from npukit.accel.cortex_m.block import Density
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal, entry_costs, routine
from npukit.accel.cortex_m.layer import DenseLayer
from npukit.accel.cortex_m.layout import Layout
from npukit.accel.cortex_m.ranges import accumulators
from npukit.accel.cortex_m.requantize import (
    FastRequantization,
    clamp_refusal,
    common_exponents,
    fast_requantization,
    overflow,
)
from npukit.accel.cortex_m.stream import byte_pairs_refusal, packed

ACCUMULATORS = ("r2", "r3", "r4", "r5")
INPUTS = ("r6", "r7", "r8", "r9")
WEIGHTS = ("r10", "r11", "r12", "lr")
STEP = 8
FRAME_OUTPUT = 0
FRAME_SHARED = 4
"""multiplier, addend and tie of all channels, right after the output pointer: one load brings all four"""
FRAME_STREAM_END = 16
FRAME_INPUTS_END = 20
FRAME_INPUTS = 24
FRAME_BYTES = 28
_PUSHED_BYTES = 36
_BYTE_BITS = 8
_LARGEST_WEIGHT = 32767
_WORD_ORDER = np.array([0, 2, 1, 3])
_UNROLLINGS = tuple((blocks, steps) for blocks in (2, 4, 8) for steps in (2, 4, 8, 16, 20))


@dataclass(frozen=True)
class Plan:
    """Everything the emitter needs to know. `shared` constants stand before the stream, not in it."""

    inputs: int
    outputs: int
    density: Density
    exponent: int
    ties: bool
    shared: bool
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
    def tail(self) -> int:
        return self.blocks - self.rounds * self.blocks_unrolled

    @property
    def block_bytes(self) -> int:
        weights = self.steps * STEP * 4 * self.density.value // 8
        shifts = 4 * (self.density is Density.BYTES)
        return weights + 16 + (0 if self.shared else 4 * (8 + 4 * self.ties + shifts))


def dense(
    layer: DenseLayer, source: Layout, target: Layout, density: Density, byte_worth: float = BYTE_WORTH
) -> Kernel | Refusal:
    """The product with weights of one density, of any tensor whose elements lie together."""
    variant = f"dense{density.value}"
    if not (source.plain and target.plain):
        return Refusal(variant, "the elements do not lie together in the order of the model")
    reason = clamp_refusal(layer.requantization)
    if reason:
        return Refusal(variant, reason)
    shared, magnitude, reason = _shared(layer), accumulators(layer).magnitude, ""
    for exponent in _exponent_choices(layer, density, shared):
        fast = fast_requantization(layer.requantization, exponent)
        reason = overflow(fast, magnitude) or _density_refusal(layer, fast, density, magnitude) or ""
        if not reason:
            return _fastest(layer, (source, target), fast, density, shared, byte_worth)
    return Refusal(variant, reason)


def _exponent_choices(layer: DenseLayer, density: Density, shared: bool) -> list[int]:
    """Common exponents worth trying; with one multiplier and bytes the one that leaves a pair's first sum unshifted."""
    common = common_exponents(layer.requantization)
    if shared and density is Density.BYTES:
        return [common[-1] + _BYTE_BITS - 2]
    return common


def _shared(layer: DenseLayer) -> bool:
    r = layer.requantization
    return bool((r.multipliers == r.multipliers[0]).all() and (r.shifts == r.shifts[0]).all())


def _density_refusal(
    layer: DenseLayer, fast: FastRequantization, density: Density, magnitude: np.ndarray
) -> str | None:
    weights = layer.weights.astype(np.int64)
    if density is Density.HALFWORDS:
        if (np.abs(weights).max(1) << fast.prescale).max() > _LARGEST_WEIGHT:
            return f"right shifts that differ by {int(np.ptp(fast.prescale))} push prescaled weights out of 16 bits"
        return None
    if magnitude[0::2].max() >= 1 << 23:
        return "an accumulator beyond 2^23 does not fit beside another"
    reason = byte_pairs_refusal(weights)
    if reason:
        return reason
    if fast.prescale[0::2].min() < _BYTE_BITS < fast.prescale[0::2].max():
        return "some channels shift left and some right"
    return None


def _fastest(
    layer: DenseLayer,
    layouts: tuple[Layout, Layout],
    fast: FastRequantization,
    density: Density,
    shared: bool,
    byte_worth: float,
) -> Kernel:
    outputs, inputs = layer.weights.shape
    left = bool(fast.prescale[0::2].min() >= _BYTE_BITS)
    plans = [
        Plan(inputs, outputs, density, int(fast.exponents[0]), fast.needs_ties, shared, left, blocks, steps)
        for blocks, steps in _UNROLLINGS
    ]
    emitted = [(plan, _emit(plan)) for plan in plans]
    plan, body = min(emitted, key=lambda e: e[1].cost(byte_worth))
    instructions, cycles = entry_costs(body, constants=True)
    return Kernel(
        symbol=layer.name,
        variant=f"dense{density.value}",
        condition=f"exponent {plan.exponent}, " + ("one multiplier" if shared else "a multiplier per channel"),
        routine=routine(body),
        constants=(Constant(f"{layer.name}_stream", _stream(layer, fast, plan)),),
        inputs=layouts[:1],
        output=layouts[1],
        instructions=instructions,
        cycles=cycles,
        scratch_bytes=2 * STEP * plan.steps,
        stack_bytes=FRAME_BYTES + _PUSHED_BYTES,
        over_read=3,
    )


def _stream(layer: DenseLayer, fast: FastRequantization, plan: Plan) -> np.ndarray:
    weights, biases = _padded(layer, plan)
    prescale = _rows(fast.prescale, plan)
    if plan.density is Density.HALFWORDS:
        weights, biases = weights << prescale[:, None], biases << prescale
        shifts = None
    else:
        biases[0::2] = 256 * biases[0::2] + biases[1::2]
        shifts = prescale.copy()
        shifts[0::2] = (prescale[0::2] - _BYTE_BITS) * (1 if plan.left_shift else -1)
    words: list[np.ndarray] = [_shared_words(fast)] if plan.shared else []
    for index in range(plan.blocks):
        rows = slice(4 * index, 4 * index + 4)
        words += [biases[rows], _block_weights(weights[rows], plan, backwards=index % 2 == 1)]
        if not plan.shared:
            words += _block_constants(fast, plan, rows, shifts)
    return (np.concatenate(words) & 0xFFFFFFFF).astype(np.uint32)


def _padded(layer: DenseLayer, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases, zero points folded in, rows and columns added and in the order of reading."""
    weights = np.zeros((4 * plan.blocks, STEP * plan.steps), np.int64)
    weights[: plan.outputs, : plan.inputs] = layer.weights
    biases = layer.bias.astype(np.int64) - layer.input_zero * layer.weights.astype(np.int64).sum(1)
    ordered = weights.reshape(len(weights), -1, 4)[:, :, _WORD_ORDER].reshape(weights.shape)
    return ordered, _rows(biases, plan)


def _rows(values: np.ndarray, plan: Plan) -> np.ndarray:
    return np.append(values, np.zeros(4 * plan.blocks - plan.outputs, np.int64)).astype(np.int64)


def _shared_words(fast: FastRequantization) -> np.ndarray:
    return np.array([fast.multipliers[0], fast.addends[0], fast.ties[0]], np.int64)


def _block_weights(weights: np.ndarray, plan: Plan, *, backwards: bool) -> np.ndarray:
    """A block's words: for each input word one of every stream, steps in the order of reading."""
    if plan.density is Density.BYTES:
        weights = 256 * weights[0::2] + weights[1::2]
    steps = packed(weights).reshape(len(weights), plan.steps, STEP // 2).transpose(1, 2, 0)
    return (steps[::-1] if backwards else steps).ravel()


def _block_constants(fast: FastRequantization, plan: Plan, rows: slice, shifts: np.ndarray | None) -> list[np.ndarray]:
    tables = [_rows(values, plan)[rows] for values in (fast.multipliers, fast.addends, fast.ties)]
    words = [] if shifts is None else [shifts[rows]]
    if not plan.ties:
        return [*words, *tables[:2]]
    return [*words, *(table[pair : pair + 2] for pair in (0, 2) for table in tables)]


@cache
def _emit(plan: Plan) -> Assembly:
    asm = Assembly()
    _emit_prologue(asm, plan)
    _emit_widening(asm, plan)
    asm.emit(f"ldr r0, [sp, #{FRAME_INPUTS}]")
    if plan.rounds:
        closing = (f"ldr r7, [sp, #{FRAME_STREAM_END}]", "cmp r1, r7")
        with asm.loop(plan.rounds, closing=closing):
            for index in range(plan.blocks_unrolled):
                _emit_block(asm, plan, index)
                _emit_stores(asm, 4, 4 * index, plan, advances=index == plan.blocks_unrolled - 1)
    for index in range(plan.tail):
        _emit_block(asm, plan, index)
        _emit_stores(asm, min(plan.outputs - 4 * (plan.blocks - plan.tail + index), 4), 4 * index, plan, advances=False)
    asm.emit(f"add sp, sp, #{FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_prologue(asm: Assembly, plan: Plan) -> None:
    """r0 input, r1 output, r2 scratch, r12 the stream."""
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{FRAME_BYTES}")
    if plan.shared:
        asm.emit("ldmia r12!, {r4-r6}", f"strd r4, r5, [sp, #{FRAME_SHARED}]", f"str r6, [sp, #{FRAME_SHARED + 8}]")
    asm.add("r3", "r12", plan.rounds * plan.blocks_unrolled * plan.block_bytes, "r4")
    asm.emit(f"str r1, [sp, #{FRAME_OUTPUT}]", f"str r3, [sp, #{FRAME_STREAM_END}]", "mov r1, r12")
    asm.add("r3", "r2", 2 * STEP * plan.steps, "r4")
    asm.emit(f"strd r3, r2, [sp, #{FRAME_INPUTS_END}]")


def _emit_widening(asm: Assembly, plan: Plan) -> None:
    """Inputs from r0 as halfwords to r2, even and odd bytes of each word in a word of their own."""
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


def _emit_block(asm: Assembly, plan: Plan, index: int) -> None:
    asm.comment("four outputs: biases, products")
    asm.emit(f"ldmia r1!, {{{', '.join(ACCUMULATORS)}}}")
    _emit_products(asm, plan, backwards=index % 2 == 1)
    asm.comment("times the multipliers, to 8 bits")
    if plan.density is Density.BYTES:
        _emit_separation(asm, plan)
    if plan.shared:
        _emit_shared_requantization(asm, plan)
    elif plan.ties:
        _emit_requantization_with_ties(asm)
    else:
        asm.emit("ldmia r1!, {r6-r12, lr}")
        addends = ("r10", "r11", "r12", "lr")
        asm.emit(*(f"smmla {a}, {a}, {m}, {c}" for a, m, c in zip(ACCUMULATORS, INPUTS, addends, strict=True)))
    asm.emit(*(f"ssat {a}, #8, {a}, asr #{plan.exponent}" for a in ACCUMULATORS))


def _emit_products(asm: Assembly, plan: Plan, *, backwards: bool) -> None:
    rounds, unrolled = _step_rounds(plan)
    end = FRAME_INPUTS if backwards else FRAME_INPUTS_END
    with asm.loop(rounds, closing=(f"ldr r6, [sp, #{end}]", "cmp r0, r6")):
        for _ in range(unrolled):
            asm.emit(f"{'ldmdb' if backwards else 'ldmia'} r0!, {{{', '.join(INPUTS)}}}")
            _STEPS[plan.density](asm)


def _step_rounds(plan: Plan) -> tuple[int, int]:
    unrolled = max(u for u in range(1, plan.steps_unrolled + 1) if plan.steps % u == 0)
    return plan.steps // unrolled, unrolled


def _emit_step16(asm: Assembly) -> None:
    for x in INPUTS:
        asm.emit(f"ldmia r1!, {{{', '.join(WEIGHTS)}}}")
        asm.emit(*(f"smlad {a}, {x}, {w}, {a}" for a, w in zip(ACCUMULATORS, WEIGHTS, strict=True)))


def _emit_step8(asm: Assembly) -> None:
    """Sums of 256 * first + second in one accumulator of a pair, of second alone in the other."""
    for two in (0, 2):
        asm.emit(f"ldmia r1!, {{{', '.join(WEIGHTS)}}}")
        for half in (0, 1):
            x = INPUTS[two + half]
            for pair in (0, 1):
                w, both, second = WEIGHTS[2 * half + pair], ACCUMULATORS[2 * pair], ACCUMULATORS[2 * pair + 1]
                asm.emit(f"smlad {both}, {x}, {w}, {both}", f"sxtb16 {w}, {w}", f"smlad {second}, {x}, {w}, {second}")


_STEPS = {Density.HALFWORDS: _emit_step16, Density.BYTES: _emit_step8}


def _emit_separation(asm: Assembly, plan: Plan) -> None:
    """The two sums of each pair, prescaled."""
    asm.emit("sub r2, r2, r3", "sub r4, r4, r5")
    if plan.shared:
        asm.emit(f"lsl r3, r3, #{_BYTE_BITS}", f"lsl r5, r5, #{_BYTE_BITS}")
        return
    first = "lsl" if plan.left_shift else "asr"
    asm.emit("ldmia r1!, {r6-r9}", f"{first} r2, r2, r6", "lsl r3, r3, r7", f"{first} r4, r4, r8", "lsl r5, r5, r9")


def _emit_shared_requantization(asm: Assembly, plan: Plan) -> None:
    asm.emit("ldmia sp, {r6-r9}" if plan.ties else "ldmia sp, {r6-r8}")
    for accumulator in ACCUMULATORS:
        addend = _tie_corrected(asm, accumulator, "r8", "r9") if plan.ties else "r8"
        asm.emit(f"smmla {accumulator}, {accumulator}, r7, {addend}")


def _emit_requantization_with_ties(asm: Assembly) -> None:
    for pair in (ACCUMULATORS[:2], ACCUMULATORS[2:]):
        asm.emit("ldmia r1!, {r6-r11}")
        for accumulator, multiplier, addend, tie in zip(pair, ("r6", "r7"), ("r8", "r9"), ("r10", "r11"), strict=True):
            asm.emit(
                f"smmla {accumulator}, {accumulator}, {multiplier}, {_tie_corrected(asm, accumulator, addend, tie)}"
            )


def _tie_corrected(asm: Assembly, accumulator: str, addend: str, tie: str) -> str:
    asm.emit(f"and r12, {tie}, {accumulator}, asr #31", f"sub r12, {addend}, r12")
    return "r12"


def _emit_stores(asm: Assembly, count: int, offset: int, plan: Plan, *, advances: bool) -> None:
    if not plan.shared:
        asm.emit(f"ldr r6, [sp, #{FRAME_OUTPUT}]")
    for channel in reversed(range(count)):
        asm.emit(f"strb {ACCUMULATORS[channel]}, [r6, #{offset + channel}]")
    if advances:
        asm.emit(f"add r6, r6, #{4 * plan.blocks_unrolled}", f"str r6, [sp, #{FRAME_OUTPUT}]")
