"""Softmax with the exponential in a table: a layer needs 256 values of it, which lie in the order of the inputs.

The reciprocal's Newton steps are gemmlowp's, in 64-bit products.
"""

from __future__ import annotations

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layer import Layer
from npukit.accel.cortex_m.layout import Layout
from npukit.net.ops import Softmax
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import quantization

LONGEST = 256
ENTRIES = 256
_UNROLLED = 16
_SUM_SHIFT = 12
_48_OVER_17 = 1515870810
_NEG_32_OVER_17 = -1010580540


def softmax(layer: Layer, source: Layout, target: Layout) -> Kernel | Refusal:
    """The softmax of each row."""
    if not (source.plain and target.plain):
        return Refusal("softmax by table", "the elements do not lie together in the order of the model")
    assert isinstance(layer.attributes, Softmax)
    height, width, length = layer.output_shape
    if length > LONGEST:
        return Refusal("softmax by table", f"sums of {length} exponentials leave 32 bits")
    exponentials = exp_table(quantization(layer.net, layer.op.inputs[0]).scale, layer.attributes.beta)
    body = _emit(height * width, length)
    return Kernel(
        symbol=layer.name,
        variant="softmax by table",
        condition=f"rows of {length}",
        body=body,
        constants=(Constant(f"{layer.name}_table", exponentials[::-1].astype(np.uint32)),),
        inputs=(source,),
        output=target,
        stack_bytes=36,
    )


def _emit(rows: int, length: int) -> Assembly:
    """r0 input, r1 output, r2 end of the input, r12 the table; within a row r3 its entry for the value 0."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    if rows > 1:
        asm.add("r2", "r0", rows * length, "r4")
    with asm.loop(rows, closing=("cmp r0, r2",)):
        _emit_largest(asm, length)
        asm.comment("r3 the table's entry for a value of 0, r6 the sum of the exponentials")
        asm.add("r3", "r12", 4 * (ENTRIES - 1), "r4")
        asm.emit("sub r3, r3, r5, lsl #2", "mov r6, #0")
        _emit_each(asm, length, _SUM)
        _emit_reciprocal(asm)
        asm.comment("each exponential times that, to 8 bits")
        _emit_each(asm, length, _RESULT, moves=True)
    asm.emit("pop {r4-r11, pc}")
    return asm


_SUM = (
    "ldrsb r4, [r0, #{}]",
    "ldr r4, [r3, r4, lsl #2]",
    f"add r4, r4, #{1 << (_SUM_SHIFT - 1)}",
    f"add r6, r6, r4, lsr #{_SUM_SHIFT}",
)
_RESULT = (
    "ldrsb r4, [r0, #{}]",
    "ldr r4, [r3, r4, lsl #2]",
    "smull r4, r5, r4, r7",
    "adds r4, r4, #0x40000000",
    "adc r5, r5, #0",
    "lsl r5, r5, #1",
    "orr r5, r5, r4, lsr #31",
    "add r5, r5, r9",
    "lsr r5, r5, r8",
    "sub r5, r5, #128",
    "ssat r5, #8, r5",
    "strb r5, [r1, #{}]",
)


def _emit_each(asm: Assembly, length: int, element: tuple[str, ...], *, moves: bool = False) -> None:
    """The same for every element of the row; afterwards r0 and r1 stand after the row, or at its beginning."""
    rounds, rest = divmod(length, _UNROLLED)
    if rounds > 1:
        asm.emit(f"add r10, r0, #{rounds * _UNROLLED}")
    if rounds:
        with asm.loop(rounds, closing=("cmp r0, r10",)):
            _emit_elements(asm, element, _UNROLLED)
            asm.emit(f"add r0, r0, #{_UNROLLED}", f"add r1, r1, #{_UNROLLED}")
    _emit_elements(asm, element, rest)
    back = rest if moves else -rounds * _UNROLLED
    asm.add("r0", "r0", back, "r4")
    asm.add("r1", "r1", back, "r4")


def _emit_elements(asm: Assembly, element: tuple[str, ...], count: int) -> None:
    for index in range(count):
        asm.emit(*(text.format(index) for text in element))


def _emit_largest(asm: Assembly, length: int) -> None:
    """The largest value of the row in r5."""
    asm.comment("r5 the row's largest value")
    asm.emit("mvn r5, #127")
    _emit_each(asm, length, ("ldrsb r4, [r0, #{}]", "cmp r4, r5", "it gt", "movgt r5, r4"))


def _emit_reciprocal(asm: Assembly) -> None:
    """r7 = 1 / sum in Q0.31 of the sum scaled to [1/2, 1), r8 = the shift of the results, r9 = its rounding."""
    asm.comment("r7 one over the sum, by Newton's method; r8 the results' shift, r9 half of it")
    asm.emit("clz r8, r6", "lsl r6, r6, r8", "rsb r8, r8, #35", "mov r9, #1", "sub r10, r8, #1", "lsl r9, r9, r10")
    asm.emit("lsr r6, r6, #1")
    asm.constant("r10", _NEG_32_OVER_17)
    _emit_multiply(asm, "r11", "r6", "r10")
    asm.constant("r7", _48_OVER_17)
    asm.emit("add r7, r7, r11")
    for _ in range(3):
        _emit_multiply(asm, "r11", "r6", "r7")
        asm.emit("rsb r11, r11, #0x20000000")
        _emit_multiply(asm, "r11", "r7", "r11")
        asm.emit("add r7, r7, r11, lsl #2")
    asm.emit("qadd r7, r7, r7")


def _emit_multiply(asm: Assembly, target: str, a: str, b: str) -> None:
    """gemmlowp's SaturatingRoundingDoublingHighMul, through r4 and r5."""
    asm.emit(f"smull r4, r5, {a}, {b}", "adds r4, r4, #0x40000000", "adc r5, r5, #0", "lsl r5, r5, #1")
    asm.emit(f"orr {target}, r5, r4, lsr #31")
