"""Entry, scaling of sums by TensorFlow Lite's definition, and stores, common to all Helium kernels."""

from __future__ import annotations

from npukit.accel.cortex_m.code.assembly import PUSHED_BYTES, Assembly

LANES = 4
"""Sums of 32 bits in a vector."""
CHUNK = 16
"""Bytes of a vector."""
REACH = 127
"""Largest step in bytes by which a load of bytes advances the pointer."""

SAVED_BYTES = PUSHED_BYTES + 64
"""Bytes on the stack for the saved registers of core and vectors."""


def emit_entry(asm: Assembly, frame_bytes: int) -> None:
    asm.emit("push {r4-r11, lr}", "vpush {d8-d15}", f"sub sp, sp, #{frame_bytes}")


def emit_return(asm: Assembly, frame_bytes: int) -> None:
    asm.emit(f"add sp, sp, #{frame_bytes}", "vpop {d8-d15}", "pop {r4-r11, pc}")


def emit_scaled(asm: Assembly, sums: str, factors: tuple[str, str, str | None], spare: str | None) -> None:
    """Sums times multipliers. VQRDMULH and VRSHL perform the definition's two roundings.

    `factors`: multipliers, right shifts as negative numbers, and left shifts if any channel has one. With `spare`,
    halves of negative numbers round away from zero, as the definition says.
    """
    multipliers, shifts, left = factors
    if left:
        asm.emit(f"vshl.s32 {sums}, {sums}, {left}")
    asm.emit(f"vqrdmulh.s32 {sums}, {sums}, {multipliers}")
    if spare:
        asm.emit(f"vand {spare}, {sums}, {shifts}", f"vshr.s32 {spare}, {spare}, #31")
        asm.emit(f"vqadd.s32 {sums}, {sums}, {spare}")
    asm.emit(f"vrshl.s32 {sums}, {sums}, {shifts}")


def emit_store(asm: Assembly, store: str, elements: int, left: str | None) -> None:
    """A store (`vstrb.N q0, [r7]`) of at most `left` elements, a register, or of all elements."""
    if left:
        asm.emit(f"vctp.{elements} {left}", "vpst", store.replace("vstrb", "vstrbt", 1))
    else:
        asm.emit(store)
