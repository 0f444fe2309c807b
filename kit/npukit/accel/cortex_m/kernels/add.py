"""Elementwise sums and differences: seven or eight instructions an element.

The operand with the larger scale always has the rescaling factor one half: its share is a shift. The other operand's
share depends on eight bits and comes from a table. Both shares are doubled, which makes SMMLAR the doubling high
multiply. The second share of a difference is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import clamp_refusal
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import INT8, OpView
from npukit.net.ops import Subtract
from npukit.net.requantize import ADD_LEFT_SHIFT, ONE_HALF, AddRescaling, quantization, rescale, sum_rescaling

_LARGEST_SHIFT = 23
_UNROLLED = 16
"""Elements per pass of the loop: 4 slow image classification by 0.2 % (`benchmarks/core/kernel_constants.md`)."""

_ENTRIES = 256
_CONSTANT_WORDS = 2


@dataclass(frozen=True)
class AddPlan:
    """Parameters of the emitter. `swapped`: True if the looked-up operand is the first. `operation`: instruction that
    takes the other operand's share."""

    lines: int
    elements: int
    layouts: tuple[Layout, Layout, Layout]
    swapped: bool
    shift: int
    ties: bool
    operation: Literal["add", "sub"]


def add(layer: OpView, first: Layout, second: Layout, target: Layout) -> Kernel | Refusal:
    """The kernel for the sum or the difference of two tensors of pixels, each with any border."""
    factors, variant = sum_rescaling(layer.net, layer.op), f"{layer.op.kind} by table"
    if reason := _refusal(layer, factors, (first, second, target)):
        return Refusal(variant, reason)
    swapped = factors.first != ONE_HALF
    lines, elements = _lines((first, second, target))
    ties = layer.output_zero != INT8[0]
    operation = "sub" if swapped and isinstance(layer.attributes, Subtract) else "add"
    plan = AddPlan(lines, elements, (first, second, target), swapped, -factors.output.shift, ties, operation)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"the {'second' if swapped else 'first'} operand has the larger scale",
        body=_emit(plan),
        constants=(Constant(f"{layer.name}_table", _constants(layer, factors, plan)),),
        inputs=(first, second),
        output=target,
        stack_bytes=36,
        may_overwrite=tuple(index for index, source in enumerate((first, second)) if source.follows(target)),
    )


def _refusal(layer: OpView, factors: AddRescaling, layouts: tuple[Layout, ...]) -> str | None:
    if any(layout.order is not Order.PIXELS for layout in layouts):
        return "takes pixels, not planes"
    if len({layout.transposed for layout in layouts}) > 1:
        return "the tensors are transposed differently"
    if ONE_HALF not in (factors.first, factors.second):
        return "no operand has the rescaling factor one half"
    if not 1 <= -factors.output.shift <= _LARGEST_SHIFT:
        return f"an output shift of {factors.output.shift} leaves 32 bits"
    return clamp_refusal(layer.clamp)


def _lines(layouts: tuple[Layout, ...]) -> tuple[int, int]:
    """The number and the length of the runs of elements that are contiguous in all three tensors."""
    height, width, channels = layouts[0].shape
    if layouts[0].transposed:
        height, width = width, height
    if all(layout.bytes == height * width * channels for layout in layouts):
        return 1, height * width * channels
    return height, width * channels


def _constants(layer: OpView, factors: AddRescaling, plan: AddPlan) -> np.ndarray:
    """Multiplier and addend, then the doubled share of each value of the looked-up operand, zero points included."""
    looked_up = factors.first if plan.swapped else factors.second
    signs = (1, -1 if isinstance(layer.attributes, Subtract) else 1)
    signed = [(quantization(layer.net, n).zero_point, sign) for n, sign in zip(layer.op.inputs, signs, strict=True)]
    (table, sign), (shifted, other) = signed if plan.swapped else signed[::-1]
    values = np.arange(INT8[0], INT8[1] + 1, dtype=np.int64)
    share = rescale((values - table) << ADD_LEFT_SHIFT, looked_up)
    entries = sign * 2 * share - other * (shifted << ADD_LEFT_SHIFT)
    addend = (layer.output_zero << plan.shift) + (1 << (plan.shift - 1))
    words = np.concatenate([[factors.output.multiplier, addend], entries])
    return (words & 0xFFFFFFFF).astype(np.uint32)


def _emit(plan: AddPlan) -> Assembly:
    """Registers: r0 shifted operand, r1 looked-up operand, r2 output, r3 table, r11 multiplier, r12 addend, lr end."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    if plan.swapped:
        asm.emit("mov r4, r0", "mov r0, r1", "mov r1, r4")
    asm.add("r3", "r12", 4 * (_CONSTANT_WORDS + _ENTRIES // 2), "r4")
    asm.emit("ldmia r12, {r11, r12}")
    first, second, target = plan.layouts
    operands = tuple(zip(("r0", "r1", "r2"), (second, first, target) if plan.swapped else plan.layouts, strict=True))
    for register, layout in operands:
        asm.add(register, register, layout.origin, "r4")
    if plan.lines > 1:
        asm.constant("r10", plan.lines)
    with asm.loop(plan.lines, closing=("subs r10, #1",)):
        _emit_line(asm, plan)
        if plan.lines > 1:
            for register, layout in operands:
                stride = layout.column_stride if layout.transposed else layout.row_stride
                asm.add(register, register, stride - plan.elements, "r4")
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_line(asm: Assembly, plan: AddPlan) -> None:
    rounds, rest = divmod(plan.elements, _UNROLLED)
    if rounds > 1:
        asm.add("lr", "r2", rounds * _UNROLLED, "r4")
    if rounds:
        with asm.loop(rounds, closing=("cmp r2, lr",)):
            for _ in range(_UNROLLED // 4):
                _emit_elements(asm, plan, 4)
    for start in range(0, rest, 4):
        _emit_elements(asm, plan, min(4, rest - start))


def _emit_elements(asm: Assembly, plan: AddPlan, count: int) -> None:
    """Code for up to four elements in r4..r7. The pointers advance."""
    sums = [f"r{4 + i}" for i in range(count)]
    asm.comment(f"{count} elements: a share from the table, the other shifted, the sum rescaled")
    asm.emit(*(f"ldrsb {s}, [r1], #1" for s in sums))
    asm.emit(*(f"ldr {s}, [r3, {s}, lsl #2]" for s in sums))
    for start in range(0, count, 2):
        pair = list(zip(sums[start : start + 2], ("r8", "r9"), strict=False))
        asm.emit(*(f"ldrsb {value}, [r0], #1" for _, value in pair))
        asm.emit(*(f"{plan.operation} {s}, {s}, {value}, lsl #{ADD_LEFT_SHIFT}" for s, value in pair))
    for s in sums:
        if plan.ties:
            asm.emit(f"add r8, r12, {s}, asr #31")
        asm.emit(f"smmlar {s}, {s}, r11, {'r8' if plan.ties else 'r12'}")
    asm.emit(*(f"ssat {s}, #8, {s}, asr #{plan.shift}" for s in sums))
    asm.emit(*(f"strb {s}, [r2], #1" for s in sums))
