"""Means over pixels: the mean of each channel, four channels at a time.

SXTAB16 adds two bytes to two sums of 16 bits. The sums of a piece of pixels fit 16 bits, and are added to sums of 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from npukit.accel.cortex_m.code.assembly import REACH, Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT, scaled_byte
from npukit.accel.cortex_m.kernels.rows import Around, nested

WORD = 4
MOST_AXES = 2
"""Limit of loops around the channels, and of loops over pixels."""
LONGEST_LINE = 1024
"""Pixels of the inner loop, if an outer loop goes over pixels too."""
_PIECE = 248
"""Pixels of a piece: a multiple of the unrolled pixels, at most 255."""
_UNROLLED = 8
"""Pixels per pass of the loop."""
_POINTERS = ("r0", "r1")
_COUNTERS = tuple(f"[sp, #{WORD * place}]" for place in range(MOST_AXES + 1))
_SUMS, _DATA, _END, _ROWS, _PLACE = ("r4", "r5", "r6", "r7"), ("r8", "r9"), "r10", "r11", "lr"

Axes = tuple[Around, ...]


@lru_cache(maxsize=1 << 12)
def mean_of_pixels(groups: int, together: int, around: Axes, pixels: Axes, exponent: int) -> Assembly:
    """Registers: r0 input, r1 output, r12 twice the sum of zero points, multiplier, addend. `groups`: of `together`
    channels each, one or four. `pixels`: the loops over pixels, by the stride of the input."""
    assert 0 <= exponent <= LARGEST_EXPONENT
    asm = Assembly()
    asm.emit("push {r4-r11, lr}", f"sub sp, sp, #{WORD * len(_COUNTERS)}")
    loops = (*around, Around(groups, (together, together)))
    emit = partial(_emit_group, asm, together, pixels, exponent)
    nested(asm, loops, _POINTERS, (0, 0), _COUNTERS, emit)
    asm.emit(f"add sp, sp, #{WORD * len(_COUNTERS)}", "pop {r4-r11, pc}")
    return asm


def _emit_group(asm: Assembly, together: int, pixels: Axes, exponent: int, _: str) -> None:
    """Code for the means of some channels."""
    sums = _SUMS[:together]
    asm.emit(*(f"mov {each}, #0" for each in sums), f"mov {_PLACE}, r0")
    for rows, line in _lines(pixels):
        step = line.strides[0]
        if rows.size > 1:
            asm.constant(_ROWS, rows.size)
        with asm.loop(rows.size, closing=(f"subs {_ROWS}, #1",)):
            for piece in _pieces(line.size):
                _emit_piece(asm, together, piece, step)
            asm.add(_PLACE, _PLACE, rows.strides[0] - line.size * step if rows.size > 1 else 0, _END)
    asm.emit("ldmia r12, {r8, r9, r10}")
    for place, each in enumerate(sums):
        asm.emit(f"rsb {each}, r8, {each}, lsl #1", *scaled_byte(each, "r9", "r10", "r11", exponent))
        asm.emit(f"strb {each}, [r1, #{place}]")


def _lines(pixels: Axes) -> Iterator[tuple[Around, Around]]:
    """The loops over pixels as an outer and an inner each. A long single loop becomes pieces and a rest."""
    if len(pixels) == MOST_AXES:
        yield pixels[0], pixels[1]
        return
    size, (step, *_) = pixels[0] if pixels else Around(1, (0,))
    whole, rest = divmod(size, _PIECE)
    if whole:
        yield Around(whole, (_PIECE * step,)), Around(_PIECE, (step,))
    if rest:
        yield Around(1, (0,)), Around(rest, (step,))


def _pieces(size: int) -> Iterator[int]:
    yield from (min(_PIECE, size - start) for start in range(0, size, _PIECE))


def _emit_piece(asm: Assembly, together: int, size: int, step: int) -> None:
    """Code that adds a piece of pixels to the sums. The place ends behind the piece."""
    if together == WORD:
        asm.emit("mov r2, #0", "mov r3, #0")
    unrolled = min(_UNROLLED, max(1, REACH // max(step, 1)))
    rounds, rest = divmod(size, unrolled)
    if rounds > 1:
        asm.add(_END, _PLACE, rounds * unrolled * step, _END)
    if rounds:
        with asm.loop(rounds, closing=(f"cmp {_PLACE}, {_END}",)):
            _emit_pixels(asm, together, unrolled, step)
    _emit_pixels(asm, together, rest, step)
    if together == WORD:
        for half, (low, high) in (("r2", ("r4", "r6")), ("r3", ("r5", "r7"))):
            asm.emit(f"sxtah {low}, {low}, {half}", f"add {high}, {high}, {half}, asr #16")


def _emit_pixels(asm: Assembly, together: int, count: int, step: int) -> None:
    load = "ldr" if together == WORD else "ldrsb"
    for first in range(0, count, len(_DATA)):
        chosen: Sequence[str] = _DATA[: count - first]
        asm.emit(*(f"{load} {each}, [{_PLACE}, #{(first + i) * step}]" for i, each in enumerate(chosen)))
        for each in chosen:
            if together == WORD:
                asm.emit(f"sxtab16 r2, r2, {each}", f"sxtab16 r3, r3, {each}, ror #8")
            else:
                asm.emit(f"add r4, r4, {each}")
    asm.add(_PLACE, _PLACE, count * step, _DATA[0])
