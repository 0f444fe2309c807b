"""Layer norm and RMS norm: sums in pairs, an inverse root with a Newton step, two high products per number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernels.rows import RowPart, Strides, each_row, from_first, unrolled
from npukit.net.ops import Norm, NormBySquares
from npukit.net.ops.norm import FRACTION_BITS, headroom

_LANES, _WORDS = 4, ("r4", "r5", "r8", "r9")
"""Numbers per word, and the registers for words loaded together."""
_OF_RUN = "r9", "r10"
"""Registers for the multiplier and the offset of a run."""
_EPSILON, _TAKEN_OFF, _ZEROS, _HELD = -16, -8, -4, 16
"""Offsets in bytes of the constants of `numbers_of_norm`, relative to their end, and their size."""


def numbers_of_norm(attributes: Norm | NormBySquares, length: int, zero: int) -> tuple[int, ...]:
    """The constants of a norm, without the constants of a row's numbers. Norms of one length share their code. `zero`:
    the input's zero point."""
    words = (attributes.epsilon, attributes.epsilon >> 32, length * zero, *zeros_of_squares(zero))
    return tuple(map(_signed, words))


def zeros_of_squares(zero: int) -> tuple[int]:
    """The word to add to a pair of numbers before their squares are summed."""
    return (_signed((-zero & 0xFFFF) * 0x00010001),)


def _signed(word: int) -> int:
    return ((word & 0xFFFFFFFF) ^ 1 << 31) - (1 << 31)


@lru_cache(maxsize=1 << 12)
def norm(rows: int, part: RowPart, strides: Strides, *, centred: bool, shift: int, run: int = 0) -> Assembly:
    """Registers: r0 input, r1 output, r12 the op's constants, then a multiplier and an offset per computed number. With
    `run`, each row has constants of its own: the op's, then a pair for `run` neighbours."""
    asm, length, before = Assembly(), part.length, part.bytes_before
    asm.emit("push {r4-r11, lr}")
    with each_row(asm, rows, part, strides, _HELD):
        if centred:
            asm.comment("r7 the row's sum, r6 that of its squares")
            asm.emit("mov r6, #0", "mov r7, #0")
            asm.constant("r11", 0x00010001)
            pair = ("sxtb16 {0}, {1}", "smlad r7, {0}, r11, r7", "smlad r6, {0}, {0}, r6")
            _emit_each_four(asm, length, pair, ("add r7, r7, r4", "smlabb r6, r4, r4, r6"))
        else:
            _emit_squares(asm, length, _ZEROS - before)
        _emit_scaling(asm, length, before, centred=centred)
        if run:
            _emit_runs(asm, length // run, run, shift)
        else:
            with from_first(asm, part):
                unrolled(asm, part.count, 2, lambda first, count: _emit_results(asm, first, count, shift), end="r3")
                asm.add("r12", "r12", -8 * part.count, "r4")
    asm.emit("pop {r4-r11, pc}")
    return asm


@lru_cache(maxsize=1 << 12)
def squares(count: int, piece: int) -> Assembly:
    """Registers: r0 pieces of the input in a row, r1 each piece's sum of squares, r12 the word to add to pairs."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}")
    asm.add("r2", "r1", 4 * count, "r4")
    with asm.loop(count, closing=("cmp r1, r2",)):
        _emit_squares(asm, piece, 0)
        asm.add("r0", "r0", piece, "r4")
        asm.emit("str r6, [r1]", "add r1, r1, #4")
    asm.emit("pop {r4-r11, pc}")
    return asm


@lru_cache(maxsize=1 << 12)
def norm_by_squares(count: int, length: int, pieces: int, shift: int) -> Assembly:
    """Registers: r0 the `count` numbers of a row of `length` to compute, r1 the output, r2 the squares of the row's
    pieces, r12 the op's constants, then a multiplier and an offset per computed number."""
    asm = Assembly()
    asm.emit("push {r4-r11, lr}", f"add r12, r12, #{_HELD}")
    asm.emit("mov r6, #0")
    registers = ("r4", "r5", "r7", "r8", "r9", "r10", "r11", "lr")
    for first in range(0, pieces, len(registers)):
        some = registers[: pieces - first]
        asm.emit(*(["ldmia r2!, {" + ", ".join(some) + "}"] if len(some) > 1 else ["ldr r4, [r2]"]))
        asm.emit(*(f"add r6, r6, {each}" for each in some))
    _emit_scaling(asm, length, 0, centred=False)
    unrolled(asm, count, 2, lambda first, at_once: _emit_results(asm, first, at_once, shift), end="r3")
    asm.emit("pop {r4-r11, pc}")
    return asm


def _emit_runs(asm: Assembly, runs: int, run: int, shift: int) -> None:
    """Code for the runs of a row, each with a multiplier and an offset. r12 goes on to the next row's."""
    asm.constant("lr", runs)
    with asm.loop(runs, closing=("subs lr, lr, #1",)):
        asm.emit(f"ldmia r12!, {{{', '.join(_OF_RUN)}}}")
        unrolled(asm, run, 2, lambda first, count: _emit_results(asm, first, count, shift, _OF_RUN), end="r3")
    asm.emit(f"add r12, r12, #{_HELD}")


def _emit_scaling(asm: Assembly, length: int, before: int, *, centred: bool) -> None:
    """r6 = the length, r7 = the subtrahend's negative, both shifted like the root; r8 = the inverse root. The op's
    constants end `before` bytes before r12."""
    _emit_spread(asm, length, before, centred=centred)
    _emit_inverse_root(asm)
    asm.comment("r6 the length, r7 the negative of what is taken off, both shifted like the root; r8 one over it")
    asm.emit(f"add r3, r3, #{FRACTION_BITS - 1 - headroom(length)}", "rsb r7, r7, #0", "lsl r7, r7, r3")
    asm.constant("r6", length)
    asm.emit("lsl r6, r6, r3")


def _emit_squares(asm: Assembly, length: int, place: int) -> None:
    """r6 = the sum of the squares of the row's distances from the zero point; r0 is unchanged. The word to add to pairs
    of numbers lies at r12 + `place`."""
    asm.comment("r6 the sum of the squares of distances from the zero point, r11 that taken off both of a pair")
    asm.emit("mov r6, #0", f"ldr r11, [r12, #{place}]")
    pair = ("sxtab16 {0}, r11, {1}", "smlad r6, {0}, {0}, r6")
    _emit_each_four(asm, length, pair, ("add r4, r4, r11", "smlabb r6, r4, r4, r6"))


def _emit_each_four(asm: Assembly, length: int, pair: Sequence[str], single: Sequence[str]) -> None:
    """Emit `pair` for each pair of numbers, two pairs from a word, and `single` for each remaining number, in r4."""

    def emit(first: int, count: int) -> None:
        words = _WORDS[: count // _LANES]
        asm.emit(*(f"ldr {word}, [r0, #{first + _LANES * i}]" for i, word in enumerate(words)))
        for word, turn in product(words, ("", ", ror #8")):
            asm.emit(*(text.format("r10", word + turn) for text in pair))
        for place in range(first + _LANES * len(words), first + count):
            asm.emit(f"ldrsb r4, [r0, #{place}]", *single)

    unrolled(asm, length, _LANES * len(_WORDS), emit, end="lr", back=True)


def _emit_spread(asm: Assembly, length: int, before: int, *, centred: bool) -> None:
    """r5:r4 = the mean square times (1024 n)^2, plus epsilon; r7 = the subtrahend of n times a number."""
    asm.comment("r5:r4 how far the row spreads")
    asm.constant("r10", length)
    if not centred:
        asm.emit(f"ldr r7, [r12, #{_TAKEN_OFF - before}]")
    asm.emit("umull r4, r5, r6, r10")
    if centred:
        asm.emit("smull r8, r9, r7, r7", "subs r4, r4, r8", "sbc r5, r5, r9")
    up = 2 * FRACTION_BITS
    asm.emit(f"lsl r5, r5, #{up}", f"orr r5, r5, r4, lsr #{32 - up}", f"lsl r4, r4, #{up}")
    asm.emit(f"ldrd r8, r9, [r12, #{_EPSILON - before}]", "adds r4, r4, r8", "adc r5, r5, r9")


def _emit_inverse_root(asm: Assembly) -> None:
    """r8 = 2^46 / sqrt of the top 32 bits of r5:r4, as the reference's `inverse_root`; r3 = half the zeros before."""
    asm.comment("r5 its top bits, an even number of zeros before them gone; r3 half of those")
    asm.emit("mov r3, #0", "cmp r5, #0", "itt eq", "moveq r5, r4", "moveq r3, #16", "clz r8, r5", "lsr r8, r8, #1")
    asm.emit("lsl r9, r8, #1", "lsl r5, r5, r9", "cmp r3, #0", "it ne", "movne r4, #0", "rsb r9, r9, #32")
    asm.emit("lsr r4, r4, r9", "orr r5, r5, r4", "add r3, r3, r8")
    asm.comment("r6 its root, by two of Newton's steps, which come to it from above")
    asm.emit("lsr r6, r5, #17", "add r6, r6, r5, lsr #19", "add r6, r6, #0x6000")
    for _ in range(2):
        asm.emit("udiv r8, r5, r6", "add r6, r6, r8", "lsr r6, r6, #1")
    asm.emit("usat r6, #16, r6", "mul r9, r6, r6", "cmp r5, r9", "sbc r6, r6, #0")
    asm.comment("r10 the root to 15 more bits, r8 one over it: 2^31 / root, and what a Newton step adds")
    asm.emit("mul r9, r6, r6", "sub r9, r5, r9", "lsl r9, r9, #14", "udiv r9, r9, r6", "add r10, r9, r6, lsl #15")
    asm.emit("mov r9, #0x80000000", "udiv r8, r9, r6", "lsl r9, r8, #15", "umull r4, r5, r10, r9")
    asm.emit("mov r11, #0x20000000", "rsbs r4, r4, #0", "sbc r5, r11, r5")
    asm.emit("lsr r4, r4, #30", "orr r4, r4, r5, lsl #2", "smull r4, r5, r4, r8")
    asm.emit("lsr r4, r4, #16", "orr r4, r4, r5, lsl #16", "add r8, r9, r4")
    asm.emit("mvn r9, #0x80000000", "cmp r8, #0", "it lt", "movlt r8, r9")


def _emit_results(asm: Assembly, first: int, count: int, shift: int, held: tuple[str, ...] = ()) -> None:
    """Code for one number, or two. `held`: registers of the constants of all numbers."""
    values, constants = ("r4", "r5")[:count], held * count or ("r9", "r10", "r11", "lr")[: 2 * count]
    asm.emit(*(f"ldrsb {value}, [r0, #{first + i}]" for i, value in enumerate(values)))
    asm.emit(*([] if held else [f"ldmia r12!, {{{', '.join(constants)}}}"]))
    for i, value in enumerate(values):
        asm.emit(f"mla {value}, {value}, r6, r7", f"smmulr {value}, {value}, r8")
        asm.emit(f"smmla {value}, {value}, {constants[2 * i]}, {constants[2 * i + 1]}")
        asm.emit(f"ssat {value}, #8, {value}, asr #{shift}", f"strb {value}, [r1, #{first + i}]")
