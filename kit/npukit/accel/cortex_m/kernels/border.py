"""Borders of zero points around tensors of pixels: filled in place, or added to a copy of a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import Constant, Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order

_CHUNK = 32
_UNROLLED_CHUNKS = 4
"""Chunks per pass of the loop: fewer or more change no time (`benchmarks/core/kernel_constants.md`)."""

_STORES = ((4, "str"), (2, "strh"), (1, "strb"))
_LOADS = {"str": "ldr", "strh": "ldrh", "strb": "ldrb"}


@dataclass(frozen=True)
class BorderPlan:
    """The bytes of a bordered tensor in memory order: border, then lines with border between, then border."""

    before: int
    lines: int
    line: int
    between: int
    after: int
    copies: bool


def fill_border(symbol: str, layout: Layout, zero_point: int) -> Kernel | Refusal:
    """The kernel that writes the zero point into the output's border, without reading the input."""
    return _kernel(symbol, "border", layout, layout, zero_point, copies=False)


def copy_with_border(symbol: str, source: Layout, target: Layout, zero_point: int) -> Kernel | Refusal:
    """The kernel that copies a tensor without a border into a tensor with a border."""
    if any(source.border):
        return Refusal("copy with border", f"the input has a border of its own, {source.border}")
    return _kernel(symbol, "copy with border", source, target, zero_point, copies=True)


def _kernel(
    symbol: str, variant: str, source: Layout, target: Layout, zero_point: int, *, copies: bool
) -> Kernel | Refusal:
    if source.order is not Order.PIXELS or target.order is not Order.PIXELS:
        return Refusal(variant, "planes have no border")
    if source.transposed != target.transposed:
        return Refusal(variant, "the tensors are transposed differently")
    pattern = np.full(4, zero_point & 0xFF, np.uint8).view(np.uint32)
    height, width, channels = target.shape
    top, left, bottom, right = target.border
    if target.transposed:
        height, width, top, left, bottom, right = width, height, left, top, right, bottom
    line = (left + width + right) * channels
    before, between, after = top * line + left * channels, (right + left) * channels, right * channels + bottom * line
    return Kernel(
        symbol=symbol,
        variant=variant,
        condition="pixels",
        body=_emit(BorderPlan(before, height, width * channels, between, after, copies)),
        constants=(Constant(f"{symbol}_pattern", pattern),),
        inputs=(source,),
        output=target,
        stack_bytes=8,
    )


@cache
def _emit(plan: BorderPlan) -> Assembly:
    """Registers: r0 input, r1 output, r4 the zero point in every byte."""
    asm = Assembly()
    asm.emit("push {r4, lr}", "ldr r4, [r12]")
    _emit_fill(asm, plan.before)
    if plan.lines > 1:
        asm.constant("lr", plan.lines - 1)
        with asm.loop(plan.lines - 1, closing=("subs lr, #1",)):
            _emit_line(asm, plan)
            _emit_fill(asm, plan.between)
    _emit_line(asm, plan)
    _emit_fill(asm, plan.after)
    asm.emit("pop {r4, pc}")
    return asm


def _emit_line(asm: Assembly, plan: BorderPlan) -> None:
    asm.comment(f"a line of {plan.line} bytes " + ("copied" if plan.copies else "that is there"))
    if not plan.copies:
        asm.add("r1", "r1", plan.line, "r2")
        return
    words, rest = divmod(plan.line, 4)
    rounds = words // 8
    if rounds > 1:
        asm.add("r3", "r1", 32 * rounds, "r2")
    with asm.loop(max(rounds, 1), closing=("cmp r1, r3",)):
        for _ in range(8 if rounds else 0):
            asm.emit("ldr r2, [r0], #4", "str r2, [r1], #4")
    for _ in range(words % 8):
        asm.emit("ldr r2, [r0], #4", "str r2, [r1], #4")
    for size, store in _STORES[1:]:
        if rest & size:
            asm.emit(f"{_LOADS[store]} r2, [r0], #{size}", f"{store} r2, [r1], #{size}")


def _emit_fill(asm: Assembly, count: int) -> None:
    """Fill `count` bytes from r1 on with the zero point. Words may be unaligned. r1 advances."""
    asm.comment(f"{count} bytes of zero points")
    chunks = count // _CHUNK if count >= 2 * _CHUNK else 0
    rounds, single = divmod(chunks, _UNROLLED_CHUNKS)
    if rounds > 1:
        asm.add("r3", "r1", rounds * _UNROLLED_CHUNKS * _CHUNK, "r2")
    with asm.loop(max(rounds, 1), closing=("cmp r1, r3",)):
        for _ in range(_UNROLLED_CHUNKS if rounds else 0):
            _emit_words(asm, _CHUNK)
    for _ in range(single):
        _emit_words(asm, _CHUNK)
    _emit_words(asm, count - chunks * _CHUNK)


def _emit_words(asm: Assembly, count: int) -> None:
    """Fill by words, then by smaller stores for the rest."""
    for size, store in _STORES:
        for _ in range(count // size):
            asm.emit(f"{store} r4, [r1], #{size}")
        count %= size
