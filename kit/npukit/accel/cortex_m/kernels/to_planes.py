"""Copies of pixels into planes of halfwords, for depthwise convolutions whose input no kernel writes as planes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from npukit.accel.cortex_m.code.assembly import INDEX_REACH, Assembly
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order

_VARIANT = "copy to planes16"
_UNROLLED_PAIRS = 4
"""Pairs of pixels per pass of the loop: other numbers change no time (`benchmarks/core/kernel_constants.md`)."""


@dataclass(frozen=True)
class PlanesPlan:
    """Parameters of the emitter."""

    source: Layout
    zero_point: int

    @property
    def pixels(self) -> int:
        return self.source.shape[0] * self.source.shape[1]

    @property
    def step(self) -> int:
        """Bytes from one pixel to the next."""
        return self.source.shape[2]


def copy_to_planes(symbol: str, source: Layout, target: Layout, zero_point: int) -> Kernel | Refusal:
    """The kernel that copies each channel into a plane of values less the zero point, for any zero point."""
    if reason := _refusal(source, target):
        return Refusal(_VARIANT, reason)
    return Kernel(
        symbol=symbol,
        variant=_VARIANT,
        condition=f"zero point {zero_point}",
        body=_emit(PlanesPlan(source, zero_point)),
        inputs=(source,),
        output=target,
        stack_bytes=20,
    )


def _refusal(source: Layout, target: Layout) -> str | None:
    if source.order is not Order.PIXELS or target.order is not Order.PLANES16:
        return f"copies pixels to planes16, not {source.order.value} to {target.order.value}"
    if any(source.border) or any(target.border):
        return "the tensors have borders"
    if source.transposed != target.transposed:
        return "the tensors are transposed differently"
    return None


@cache
def _emit(plan: PlanesPlan) -> Assembly:
    """Registers: r0 a channel of the first pixel, r1 output, r2 the channel of a pixel, r4 remaining channels, r6 the
    zero point twice."""
    asm = Assembly()
    asm.emit("push {r4-r7, lr}")
    asm.constant("r6", (plan.zero_point & 0xFFFF) * 0x10001)
    asm.constant("r4", plan.step)
    with asm.loop(plan.step, closing=("subs r4, #1",)):
        asm.comment(f"a plane of {plan.pixels} values")
        asm.emit("mov r2, r0", "add r0, r0, #1")
        _emit_plane(asm, plan)
    asm.emit("pop {r4-r7, pc}")
    return asm


def _emit_plane(asm: Assembly, plan: PlanesPlan) -> None:
    """Code for a plane, two pixels per word. An odd last pixel fills its word with a value that meets no weight."""
    rounds, rest = divmod(plan.pixels // 2, _UNROLLED_PAIRS)
    if rounds > 1:
        asm.constant("r5", rounds)
    with asm.loop(max(rounds, 1), closing=("subs r5, #1",)):
        for _ in range(_UNROLLED_PAIRS if rounds else 0):
            _emit_pixels(asm, plan, 2)
    for _ in range(rest):
        _emit_pixels(asm, plan, 2)
    if plan.pixels % 2:
        _emit_pixels(asm, plan, 1)


def _emit_pixels(asm: Assembly, plan: PlanesPlan, count: int) -> None:
    for register in ("r3", "r7")[:count]:
        if plan.step <= INDEX_REACH:
            asm.emit(f"ldrsb {register}, [r2], #{plan.step}")
        else:
            asm.emit(f"ldrsb {register}, [r2]")
            asm.add("r2", "r2", plan.step, "r12")
    if count == 2:
        asm.emit("pkhbt r3, r3, r7, lsl #16")
    asm.emit("ssub16 r3, r3, r6", "str r3, [r1], #4")
