"""Average and maximum pools on pixels, one word of channels at a time. Windows lie inside the tensor."""

from __future__ import annotations

from dataclasses import dataclass

from npukit.accel.cortex_m.code.assembly import PAIR_REACH, REACH, Assembly
from npukit.accel.cortex_m.code.requantize import clamp_refusal
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import AveragePool

LARGEST_WINDOW = 255
_UNROLLED_TAPS = 25
"""Limit of unrolled taps of a row: other limits change no time (`benchmarks/core/kernel_constants.md`)."""

_SUMS = ("r4", "r5", "r6", "r7")


@dataclass(frozen=True)
class PoolPlan:
    """Parameters of the emitter. A step takes `bytes` channels of a pixel."""

    layer: OpView
    source: Layout
    target: Layout
    bytes: int

    @property
    def averages(self) -> bool:
        return isinstance(self.layer.attributes, AveragePool)

    @property
    def rows(self) -> list[int]:
        """Byte offsets of the first tap of each run of evenly spaced taps."""
        if self.source.row_stride == self.layer.window.kernel[1] * self.source.column_stride:
            return [0]
        return [row * self.source.row_stride for row in range(self.layer.window.kernel[0])]

    @property
    def taps_in_row(self) -> int:
        return self.layer.window.kernel[0] * self.layer.window.kernel[1] // len(self.rows)


def pool(layer: OpView, source: Layout, target: Layout) -> Kernel | Refusal:
    """The pool from one tensor of pixels to another."""
    variant = "average pool" if isinstance(layer.attributes, AveragePool) else "max pool"
    if reason := _refusal(layer, source, target):
        return Refusal(variant, reason)
    aligned = all(stride % 4 == 0 for stride in (source.row_stride, source.column_stride, layer.input_shape[2]))
    plan = PoolPlan(layer, source, target, 8 if aligned and layer.input_shape[2] % 8 == 0 else 4)
    return Kernel(
        symbol=layer.name,
        variant=variant,
        condition=f"windows of {layer.window.kernel[0]}x{layer.window.kernel[1]} without padding",
        body=_emit(plan),
        inputs=(source,),
        output=target,
        stack_bytes=36 + _FRAME_BYTES,
    )


def _refusal(layer: OpView, source: Layout, target: Layout) -> str | None:
    if any(layout.order is not Order.PIXELS for layout in (source, target)):
        return "pools pixels, not planes"
    if isinstance(layer.attributes, AveragePool) and layer.window.taps > LARGEST_WINDOW:
        return f"a sum of more than {LARGEST_WINDOW} values does not fit a halfword"
    if layer.input_shape[2] < 4:
        return f"{layer.input_shape[2]} channels are less than a word"
    return clamp_refusal(layer.clamp)


_FRAME_ROW_OUTPUT, _FRAME_ROWS, _FRAME_COLUMNS, _FRAME_BYTES = 0, 8, 12, 20


def _emit(plan: PoolPlan) -> Assembly:
    """Registers: r0 window, r1 output, r2 end of the output pixel, r12 values in a window."""
    asm = Assembly()
    height, width, _ = plan.layer.output_shape
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{_FRAME_BYTES}")
    asm.add("r0", "r0", plan.source.origin, "r3")
    asm.add("r1", "r1", plan.target.origin, "r3")
    if plan.averages:
        asm.constant("r12", plan.layer.window.taps)
    _emit_counter_start(asm, height, _FRAME_ROWS)
    with asm.loop(height, closing=_counter(_FRAME_ROWS)):
        asm.emit(f"strd r1, r0, [sp, #{_FRAME_ROW_OUTPUT}]")
        _emit_counter_start(asm, width, _FRAME_COLUMNS)
        with asm.loop(width, closing=_counter(_FRAME_COLUMNS)):
            _emit_window(asm, plan)
        asm.emit(f"ldrd r1, r0, [sp, #{_FRAME_ROW_OUTPUT}]")
        asm.add("r0", "r0", plan.layer.window.strides[0] * plan.source.row_stride, "r3")
        asm.add("r1", "r1", plan.target.row_stride, "r3")
    asm.emit(f"add sp, sp, #{_FRAME_BYTES}", "pop {r4-r11, pc}")
    return asm


def _emit_counter_start(asm: Assembly, count: int, slot: int) -> None:
    if count > 1:
        asm.constant("r3", count)
        asm.emit(f"str r3, [sp, #{slot}]")


def _counter(slot: int) -> tuple[str, ...]:
    return f"ldr r3, [sp, #{slot}]", "subs r3, #1", f"str r3, [sp, #{slot}]"


def _emit_window(asm: Assembly, plan: PoolPlan) -> None:
    """Code for all channels of one output pixel. The pointers advance to the next pixel."""
    channels = plan.layer.input_shape[2]
    groups, rest = divmod(channels, plan.bytes)
    if groups > 1:
        asm.add("r2", "r1", groups * plan.bytes, "r3")
    with asm.loop(groups, closing=("cmp r1, r2",)):
        _emit_group(asm, plan)
        asm.emit(f"add r0, r0, #{plan.bytes}", f"add r1, r1, #{plan.bytes}")
    if rest:
        asm.emit(f"sub r0, r0, #{4 - rest}", f"sub r1, r1, #{4 - rest}")
        _emit_group(asm, plan)
        asm.emit("add r0, r0, #4", "add r1, r1, #4")
    asm.add("r0", "r0", plan.layer.window.strides[1] * plan.source.column_stride - channels, "r3")
    asm.add("r1", "r1", plan.target.column_stride - channels, "r3")


def _emit_group(asm: Assembly, plan: PoolPlan) -> None:
    words = plan.bytes // 4
    asm.comment(f"{plan.bytes} channels of a window")
    if plan.averages:
        asm.emit(*(f"mov {s}, #0" for s in _SUMS[: 2 * words]))
    else:
        asm.emit(*(f"ldr {s}, [r0, #{4 * i}]" for i, s in enumerate(_SUMS[:words])))
    _emit_taps(asm, plan)
    if plan.averages:
        half = plan.layer.window.taps // 2
        for index, sums in enumerate(_SUMS[: 2 * words]):
            channel = index // 2 * 4 + index % 2
            for take, offset in ((f"sxth r8, {sums}", channel), (f"asr r8, {sums}, #16", channel + 2)):
                asm.emit(take, "cmp r8, #0", "ite gt", f"addgt r8, r8, #{half}", f"suble r8, r8, #{half}")
                asm.emit("sdiv r8, r8, r12", f"strb r8, [r1, #{offset}]")
    else:
        asm.emit(*(f"str {s}, [r1, #{4 * i}]" for i, s in enumerate(_SUMS[:words])))


def _emit_taps(asm: Assembly, plan: PoolPlan) -> None:
    """Add or compare every value of the window. r3 advances where immediates do not reach."""
    step = plan.source.column_stride
    asm.emit("mov r3, r0")
    position = 0
    for row in plan.rows:
        asm.add("r3", "r3", row - position, "r10")
        unrolled = max(u for u in range(1, _UNROLLED_TAPS + 1) if plan.taps_in_row % u == 0)
        rounds = plan.taps_in_row // unrolled
        if rounds > 1:
            asm.add("r11", "r3", plan.taps_in_row * step, "r10")
        with asm.loop(rounds, closing=("cmp r3, r11",)):
            moved = _emit_unrolled_taps(asm, plan, unrolled)
            if rounds > 1:
                asm.add("r3", "r3", unrolled * step - moved, "r10")
        position = row + (plan.taps_in_row * step if rounds > 1 else moved)


def _emit_unrolled_taps(asm: Assembly, plan: PoolPlan, count: int) -> int:
    """Code for taps from r3 on; returns the bytes by which r3 moved."""
    step, moved = plan.source.column_stride, 0
    reach = PAIR_REACH if plan.bytes == 8 else REACH
    for tap in range(count):
        if tap * step - moved > reach:
            asm.add("r3", "r3", tap * step - moved, "r10")
            moved = tap * step
        _emit_tap(asm, plan, tap * step - moved)
    return moved


def _emit_tap(asm: Assembly, plan: PoolPlan, offset: int) -> None:
    words = ("r8", "r9")[: plan.bytes // 4]
    asm.emit(f"ldrd r8, r9, [r3, #{offset}]" if len(words) == 2 else f"ldr r8, [r3, #{offset}]")
    for index, word in enumerate(words):
        if plan.averages:
            even, odd = _SUMS[2 * index], _SUMS[2 * index + 1]
            asm.emit(f"sxtab16 {even}, {even}, {word}", f"sxtab16 {odd}, {odd}, {word}, ror #8")
        else:
            best = _SUMS[index]
            asm.emit(f"ssub8 r10, {best}, {word}", f"sel {best}, {best}, {word}")
