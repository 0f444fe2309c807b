"""Transpositions: elements copied from one order of axes to another, four bytes per register.

Axes that remain contiguous are merged. The innermost loop runs along the axis with contiguous elements in the output
(gather: words are assembled from distant elements), in the input (scatter: words are split), or in both (copy). The
fastest applicable form is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from npukit.accel.cortex_m.code.assembly import INDEX_REACH, REACH, Assembly

_WORD = 4
_UNROLLED_WORDS = 4
"""Words per pass of the loop: 1 slows a language model by 0.1 % (`benchmarks/core/kernel_constants.md`)."""
_COUNTERS = ("r5", "r6", "r7", "r8", "r9")
_DATA = ("r2", "r3", "r12", "lr")
_MAPPED = ("r2", "r3", "r10", "r11")
_UNROLLED_BYTES = 16
"""Looked-up bytes per pass of the loop: with 4 a block of a language model takes 0.2 % longer, with 64 none less
(`benchmarks/core/kernel_constants.md`)."""
_SAVED = "r4-r11, {}"
_LOADS = {1: "ldrb", 2: "ldrh", 4: "ldr"}
_STORES = {1: "strb", 2: "strh", 4: "str"}


@dataclass(frozen=True)
class Axis:
    """An axis of the output: size, and strides in bytes in the input and in the output."""

    size: int
    source: int
    target: int

    @property
    def bytes(self) -> tuple[int, int]:
        """Bytes from the first element to behind the last, in the input and in the output."""
        return self.size * self.source, self.size * self.target


class Copying(NamedTuple):
    """A routine that takes in r2 the address of the output for the last pass of the outermost loop, `last` bytes from
    the output's first. Routines for more or fewer passes are therefore the same."""

    body: Assembly
    last: int


def dense_strides(shape: Sequence[int], item: int) -> tuple[int, ...]:
    """The strides in bytes of a dense tensor."""
    return tuple(item * prod(shape[axis + 1 :]) for axis in range(len(shape)))


@lru_cache(maxsize=1 << 12)
def transposition(axes: tuple[Axis, ...], item: int, *, mapped: bool = False, filling: bool = False) -> Copying | None:
    """The fastest routine for `axes`, from the outermost of the output inwards; None if none applies.

    r0 is the input, r1 the output. `mapped`: each byte is replaced by its entry in the table at r3. `filling`: the
    input is a constant at r3.
    """
    if item > _WORD:
        axes, item = (*axes, Axis(item // _WORD, _WORD, _WORD)), _WORD
    merged = _merged(axes) or (Axis(1, item, item),)
    merged, item = (merged, item) if mapped else _widened(merged, item)
    kind = _Mapped if mapped else _Along
    if not any(kind.suits(axis, item) for axis in merged):
        merged = (*merged, Axis(1, item, item))
    if len(merged) > len(_COUNTERS) + 1:
        return None
    found = [_emit(merged, inner, item, kind, filling) for inner, axis in enumerate(merged) if kind.suits(axis, item)]
    return min(found, key=lambda copying: copying.body.cycles, default=None)


def _merged(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    found: list[Axis] = []
    for axis in axes:
        if found and axis.bytes == (found[-1].source, found[-1].target):
            found[-1] = replace(axis, size=axis.size * found[-1].size)
        elif axis.size > 1:
            found.append(axis)
    return tuple(found)


def _widened(axes: tuple[Axis, ...], item: int) -> tuple[tuple[Axis, ...], int]:
    """Contiguous elements as one wider element, up to the width of a register."""
    last = axes[-1]
    wide = last.size * item
    if len(axes) > 1 and last.source == last.target == item and wide in _LOADS:
        return axes[:-1], wide
    return axes, item


def _emit(axes: Sequence[Axis], inner: int, item: int, kind: type[_Along], filling: bool) -> Copying:
    asm = Assembly()
    asm.emit("push {" + _SAVED.format("lr") + "}")
    if filling:
        asm.emit("mov r0, r3")
    outer = [axis for place, axis in enumerate(axes) if place != inner]
    along = kind(asm, axes[inner], item, alone=not outer)
    along.prepare()
    _emit_loops(along, outer, _COUNTERS)
    asm.emit("pop {" + _SAVED.format("pc") + "}")
    passes, size = (outer[0].size, outer[0].target) if outer else along.passes
    return Copying(asm, max(passes - 1, 0) * size)


def _emit_loops(along: _Along, outer: Sequence[Axis], counters: Sequence[str], *, outermost: bool = True) -> None:
    """Code for the loops. The addresses end behind the last element of the outermost axis."""
    if not outer:
        along.emit()
        return
    axis, *others = outer
    asm, counter = along.asm, counters[0]
    closing = _begun(asm, counter, axis.size, axis.target if outermost else None)
    inside = others[0] if others else along.axis
    with asm.loop(axis.size, closing=(closing,)):
        _emit_loops(along, others, counters[1:], outermost=False)
        for register, stride, moved in zip(("r0", "r1"), (axis.source, axis.target), inside.bytes, strict=True):
            asm.add(register, register, stride - moved, "r2")


def _begun(asm: Assembly, register: str, passes: int, size: int | None) -> str:
    """Begin a loop of `passes` passes and return the closing instruction. `size`: bytes written per pass of the
    outermost loop, else None."""
    if size is not None:
        asm.add(register, "r2", size, register)
        return f"cmp r1, {register}"
    asm.constant(register, passes)
    return f"subs {register}, #1"


@dataclass(frozen=True)
class _Along:
    """The innermost loop, along one axis. For a long stride r10 holds one stride and r11 three."""

    asm: Assembly
    axis: Axis
    item: int
    alone: bool
    """True if no other loop is around."""

    @staticmethod
    def suits(axis: Axis, item: int) -> bool:
        return item in (axis.source, axis.target)

    @property
    def _gathers(self) -> bool:
        return self.axis.target == self.item

    @property
    def _stride(self) -> int:
        """Bytes between the elements that are not contiguous."""
        return self.axis.source if self._gathers else self.axis.target

    def prepare(self) -> None:
        if self._stride > INDEX_REACH:
            self.asm.constant("r10", self._stride)
            self.asm.emit("add r11, r10, r10, lsl #1")

    def emit(self) -> None:
        """Code for all elements. Both addresses end behind the last element."""
        rounds, size = self.passes
        if rounds:
            with self.asm.loop(rounds, closing=(_begun(self.asm, "r4", rounds, size if self.alone else None),)):
                self._words(_UNROLLED_WORDS)
        words, rest = divmod(self.axis.size * self.item, _WORD)
        self._words(words - rounds * _UNROLLED_WORDS)
        for _ in range(rest // self.item):
            for name, base, stride in ((_LOADS, "r0", self.axis.source), (_STORES, "r1", self.axis.target)):
                if stride <= INDEX_REACH:
                    self.asm.emit(f"{name[self.item]} lr, [{base}], #{stride}")
                else:
                    self.asm.emit(f"{name[self.item]} lr, [{base}]", f"add {base}, {base}, r10")

    @property
    def passes(self) -> tuple[int, int]:
        """The passes of the loop, and the bytes by which each pass advances the output."""
        rounds = self.axis.size * self.item // (_UNROLLED_WORDS * _WORD)
        return rounds if rounds > 1 else 0, _UNROLLED_WORDS * _WORD // self.item * self.axis.target

    def _words(self, count: int) -> None:
        if self._stride == self.item:
            for first in range(0, count, len(_DATA)):
                data = _DATA[: count - first]
                for name, base in (("ldr", "r0"), ("str", "r1")):
                    for place, register in enumerate(data[1:], 1):
                        self.asm.emit(f"{name} {register}, [{base}, #{_WORD * place}]")
                    self.asm.emit(f"{name} {data[0]}, [{base}], #{_WORD * len(data)}")
        else:
            for _ in range(count):
                self._gather() if self._gathers else self._scatter()

    def _gather(self) -> None:
        """Assemble a word from distant elements."""
        data = _DATA[: _WORD // self.item]
        for register, address in zip(data, self._apart("r0"), strict=True):
            self.asm.emit(f"{_LOADS[self.item]} {register}, {address}")
        self._move_on("r0")
        for place, register in enumerate(data[1:], 1):
            self.asm.emit(f"orr r2, r2, {register}, lsl #{8 * self.item * place}")
        self.asm.emit("str r2, [r1], #4")

    def _scatter(self) -> None:
        """Split a word into distant elements."""
        self.asm.emit("ldr r2, [r0], #4")
        for place, address in enumerate(self._apart("r1")):
            if place:
                self.asm.emit(f"lsr r2, r2, #{8 * self.item}")
            self.asm.emit(f"{_STORES[self.item]} r2, {address}")
        self._move_on("r1")

    def _apart(self, base: str) -> Iterator[str]:
        """The addresses of a word's elements, a stride apart."""
        near = (f"[{base}], #{self._stride}",) * _WORD
        far = (f"[{base}]", f"[{base}, r10]", f"[{base}, r10, lsl #1]", f"[{base}, r11]")
        return iter((near if self._stride <= INDEX_REACH else far)[: _WORD // self.item])

    def _move_on(self, base: str) -> None:
        if self._stride > INDEX_REACH:
            shift = (_WORD // self.item).bit_length() - 1
            self.asm.emit(f"add {base}, {base}, r10, lsl #{shift}" if shift else f"add {base}, {base}, r10")


@dataclass(frozen=True)
class _Mapped(_Along):
    """The innermost loop of bytes, four at a time, looked up in the table at r12."""

    @staticmethod
    def suits(axis: Axis, item: int) -> bool:
        return max(axis.source, axis.target) * _UNROLLED_BYTES <= REACH

    def prepare(self) -> None:
        self.asm.emit("mov r12, r3")

    def emit(self) -> None:
        rounds, size = self.passes
        if rounds:
            closing = _begun(self.asm, "r4", rounds, size if self.alone else None) if rounds > 1 else ""
            with self.asm.loop(rounds, closing=(closing,)):
                self._looked_up(_UNROLLED_BYTES)
        self._looked_up(self.axis.size - rounds * _UNROLLED_BYTES)

    @property
    def passes(self) -> tuple[int, int]:
        return self.axis.size // _UNROLLED_BYTES, _UNROLLED_BYTES * self.axis.target

    def _looked_up(self, count: int) -> None:
        """Look up `count` bytes and advance the addresses."""
        for first in range(0, count, _WORD):
            places = range(first, min(first + _WORD, count))
            for register, place in zip(_MAPPED, places, strict=False):
                self.asm.emit(f"ldrb {register}, [r0, #{place * self.axis.source}]")
            for register in _MAPPED[: len(places)]:
                self.asm.emit(f"ldrb {register}, [r12, {register}]")
            for register, place in zip(_MAPPED, places, strict=False):
                self.asm.emit(f"strb {register}, [r1, #{place * self.axis.target}]")
        self.asm.add("r0", "r0", count * self.axis.source, "r2")
        self.asm.add("r1", "r1", count * self.axis.target, "r2")
