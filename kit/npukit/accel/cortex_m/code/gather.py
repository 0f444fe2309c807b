"""Gathering of the inputs of a pixel pair: int8 from memory to int16, the two pixels interleaved.

Four products along K take four words: [first pixel (k0, k2)] [second (k0, k2)] [first (k1, k3)] [second (k1, k3)].
SXTB16 splits a word of bytes in this way. The weights are permuted, never the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.assembly import INDEX_REACH, PAIR_REACH, REACH, WORD_ORDER, Assembly

PADDING = -1
_UNROLLED_WORDS = 24
"""Words gathered without a loop: with 8 keyword spotting takes 0.2 % longer (`benchmarks/core/kernel_constants.md`)."""

_LOOPED_WORDS = 8
"""Words per pass of the loop: 4 slow image classification by 0.1 % (`benchmarks/core/kernel_constants.md`)."""

_HIGH_BYTES = 0xFF00FF00


@dataclass(frozen=True)
class ByteRun:
    """Contiguous bytes. `start`: offset from the pixel's first byte. `position`: index in the flattened kernel."""

    start: int
    length: int
    position: int


@dataclass(frozen=True)
class Gather:
    """The inputs of a pixel pair. `pixel_step`, `line_step`: bytes between the pixels and between lines.

    The tensor begins at a word, the first window `origin` bytes after it. `scaled`: True to put values into the high
    byte of the halfword, i.e. to multiply them by 256. The depth is rounded up to `multiple`.
    """

    runs: tuple[ByteRun, ...]
    pixel_step: int
    scaled: bool
    multiple: int
    origin: int
    line_step: int

    @property
    def words(self) -> tuple[tuple[int, int], ...]:
        """Offset and kernel position of each whole word."""
        return tuple((run.start + at, run.position + at) for run in self.runs for at in range(0, run.length - 3, 4))

    @property
    def leftovers(self) -> tuple[tuple[int, int], ...]:
        """Offset and kernel position of each byte after the last whole word of a run."""
        ends = ((run, at) for run in self.runs for at in range(run.length - run.length % 4, run.length))
        return tuple((run.start + at, run.position + at) for run, at in ends)

    @property
    def depth(self) -> int:
        plain = 4 * len(self.words) + (len(self.leftovers) + 3) // 4 * 4
        return -(-plain // self.multiple) * self.multiple

    @property
    def order(self) -> np.ndarray:
        """The kernel position of each product along K, or PADDING where the weight must be 0."""
        order = [position + byte for _, position in self.words for byte in WORD_ORDER]
        order += [position for _, position in self.leftovers]
        return np.array(order + [PADDING] * (self.depth - len(order)))

    @property
    def aligned(self) -> bool:
        """True if every loaded word is aligned, as LDRD demands."""
        offsets = [offset for offset, _ in self.words]
        return all(v % 4 == 0 for v in (*offsets, self.pixel_step, self.line_step, self.origin))


def emit_gather(asm: Assembly, gather: Gather) -> None:
    """Registers: r0 the first pixel, r1 the destination of the words; both advance."""
    asm.add("lr", "r0", gather.pixel_step, "r3")
    if gather.scaled:
        asm.emit(f"mov r10, #{_HIGH_BYTES:#x}")
    position = _emit_words(asm, gather)
    if gather.leftovers:
        _emit_leftovers(asm, gather, position)
    # Step over words that meet no weight.
    missing = gather.depth - 4 * len(gather.words) - (len(gather.leftovers) + 3) // 4 * 4
    for _ in range(missing // 4):
        asm.emit("stmia r1!, {r2-r5}")


def _emit_words(asm: Assembly, gather: Gather) -> int:
    if len(gather.words) <= _UNROLLED_WORDS:
        return _emit_unrolled(asm, gather, [offset for offset, _ in gather.words])
    position = 0
    for run in gather.runs:
        asm.add("r0", "r0", run.start - position, "r3")
        asm.add("lr", "lr", run.start - position, "r3")
        position = run.start + _emit_run(asm, gather, run.length // 4)
    return position


def _emit_run(asm: Assembly, gather: Gather, words: int) -> int:
    """Gather the words of one run, in a loop if there are many. Returns the bytes by which the pointers moved."""
    rounds = words // _LOOPED_WORDS
    if rounds > 1:
        asm.emit(f"add r11, r0, #{rounds * _LOOPED_WORDS * 4}")
    if rounds:
        with asm.loop(rounds, closing=("cmp r0, r11",)):
            _emit_contiguous(asm, gather, _LOOPED_WORDS)
    if rest := words % _LOOPED_WORDS:
        _emit_contiguous(asm, gather, rest)
    return words * 4


def _emit_contiguous(asm: Assembly, gather: Gather, words: int) -> None:
    """Gather contiguous words and advance the pointers."""
    _emit_at(asm, gather, [4 * i for i in range(words)])
    asm.emit(f"add r0, r0, #{4 * words}", f"add lr, lr, #{4 * words}")


def _emit_unrolled(asm: Assembly, gather: Gather, offsets: Sequence[int]) -> int:
    """Gather words at any offsets. The pointers advance where an immediate does not reach."""
    reach = PAIR_REACH - 4 if gather.aligned else REACH
    base, pending = 0, []
    for offset in offsets:
        if offset - base > reach:
            _emit_at(asm, gather, pending)
            asm.add("r0", "r0", offset - base, "r3")
            asm.add("lr", "lr", offset - base, "r3")
            base, pending = offset, []
        pending.append(offset - base)
    _emit_at(asm, gather, pending)
    return base


def _emit_at(asm: Assembly, gather: Gather, offsets: Sequence[int]) -> None:
    for first, second in zip(offsets[0::2], offsets[1::2], strict=False):
        together = gather.aligned and second == first + 4 and first <= PAIR_REACH
        for pointer, low, high in (("r0", "r2", "r4"), ("lr", "r6", "r8")):
            if together:
                asm.emit(f"ldrd {low}, {high}, [{pointer}, #{first}]")
            else:
                asm.emit(f"ldr {low}, [{pointer}, #{first}]", f"ldr {high}, [{pointer}, #{second}]")
        _emit_widening(asm, gather, (("r3", "r5", "r6"), ("r7", "r9", "r8"), ("r6", "r8", "r4"), ("r2", "r4", "r2")))
        asm.emit("stmia r1!, {r2-r9}")
    if len(offsets) % 2:
        asm.emit(f"ldr r2, [r0, #{offsets[-1]}]", f"ldr r6, [lr, #{offsets[-1]}]")
        _emit_widening(asm, gather, (("r3", "r5", "r6"), ("r2", "r4", "r2")))
        asm.emit("stmia r1!, {r2-r5}")


def _emit_widening(asm: Assembly, gather: Gather, words: Sequence[tuple[str, str, str]]) -> None:
    """Split each word of four bytes into registers of even and of odd bytes. The source is overwritten last."""
    for even, odd, source in words:
        low = f"and {even}, r10, {source}, lsl #8" if gather.scaled else f"sxtb16 {even}, {source}"
        high = f"and {odd}, r10, {source}" if gather.scaled else f"sxtb16 {odd}, {source}, ror #8"
        asm.emit(*((low, high) if even != source else (high, low)))


def _emit_leftovers(asm: Assembly, gather: Gather, position: int) -> None:
    """Gather single bytes, four per pixel at a time. `position`: offset of the pointers."""
    offsets = [offset for offset, _ in gather.leftovers]
    if min(offsets) - position < -INDEX_REACH:
        asm.add("r0", "r0", -position, "r3")
        asm.add("lr", "lr", -position, "r3")
        position = 0
    for start in range(0, len(offsets), 4):
        four = [offset - position for offset in offsets[start : start + 4]]
        for pointer, low, high in (("r0", "r2", "r4"), ("lr", "r3", "r5")):
            _emit_byte_pair(asm, gather, pointer, low, four[:2])
            _emit_byte_pair(asm, gather, pointer, high, four[2:])
        asm.emit("stmia r1!, {r2-r5}")


def _emit_byte_pair(asm: Assembly, gather: Gather, pointer: str, target: str, offsets: Sequence[int]) -> None:
    load = "ldrb" if gather.scaled else "ldrsb"
    for register, offset in zip((target, "r6"), offsets, strict=False):
        if offset > REACH:
            asm.constant(register, offset)
        asm.emit(f"{load} {register}, [{pointer}, {register if offset > REACH else f'#{offset}'}]")
    if len(offsets) == 2:
        asm.emit(f"pkhbt {target}, {target}, r6, lsl #16")
    if offsets and gather.scaled:
        asm.emit(f"lsl {target}, {target}, #8")
