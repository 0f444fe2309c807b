"""Arrangements of a kernel's loops, each with a readable text form for tuning records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from npukit.errors import NpukitError

TILES, _APART = "tiles", " on arrays made before"
_NEST = r"(?:-|[1-9]\d*(?:x[1-9]\d*)*)/[1-9]\d*(?:x[1-9]\d*)*"
_TILED = re.compile(rf"{TILES}((?: {_NEST})+)({_APART})?")
_SPELLED = re.compile(r"(\d+) sums side by side along loop (\d+), (\d+) terms a turn(?:, (\d+) rows along loop (\d+))?")


@dataclass(frozen=True)
class Nest:
    """Innermost turns of a sum: those split off from each loop around it, and from each loop over terms."""

    inside: tuple[int, ...]
    terms: tuple[int, ...]


@dataclass(frozen=True)
class Blocking:
    """Equal blocking of all sums: `factor` neighbouring sums side by side, `unroll` terms unrolled. Neighbours lie
    along the loop around the sum with index `axis`, counted from the innermost. `rows` neighbours along loop `across`
    share loaded values. A loop whose extent is not divisible stays as it is."""

    axis: int = 0
    factor: int = 1
    unroll: int = 1
    across: int = 0
    rows: int = 1
    apart = False

    def nest(self, number: int, around: Sequence[int], over: Sequence[int]) -> Nest:
        del number
        inside, terms = [1] * len(around), [1] * len(over)
        for axis, factor in ((self.across, self.rows), (self.axis, self.factor)):
            if axis < len(around) and around[-1 - axis] % factor == 0 and factor > 1:
                inside[-1 - axis] = factor
        if over[-1] % self.unroll == 0:
            terms[-1] = self.unroll
        return Nest(tuple(inside), tuple(terms))

    def __str__(self) -> str:
        rows = f", {self.rows} rows along loop {self.across}" if self.rows > 1 else ""
        return f"{self.factor} sums side by side along loop {self.axis}, {self.unroll} terms a turn{rows}"

    @classmethod
    def parse(cls, text: str) -> Blocking:
        if (match := _SPELLED.fullmatch(text)) is None:
            raise _unreadable(text)
        factor, axis, unroll, rows, across = (int(number) if number else 0 for number in match.groups())
        return cls(axis, factor, unroll, across, rows or 1)


AS_WRITTEN = Blocking()


@dataclass(frozen=True)
class Tiling:
    """Separate tiling of each sum, found by TVM's MetaSchedule: `tiles 1x5x1x8/1x4 1x16/1 on arrays made before`."""

    sums: tuple[Nest, ...]
    apart: bool = False

    def nest(self, number: int, around: Sequence[int], over: Sequence[int]) -> Nest:
        found = self.sums[number] if number < len(self.sums) else None
        if found is None or not (_fits(found.inside, around) and _fits(found.terms, over) and _in_order(found, over)):
            raise _unreadable(str(self))
        return found

    def __str__(self) -> str:
        sums = " ".join(f"{_times(nest.inside)}/{_times(nest.terms)}" for nest in self.sums)
        return f"{TILES} {sums}{_APART if self.apart else ''}"

    @classmethod
    def parse(cls, text: str) -> Tiling:
        if (match := _TILED.fullmatch(text)) is None:
            raise _unreadable(text)
        pairs = [part.split("/") for part in match[1].split()]
        return cls(tuple(Nest(_factors(inside), _factors(terms)) for inside, terms in pairs), bool(match[2]))


LoopArrangement: TypeAlias = Blocking | Tiling
"""The arrangement of a kernel's loops. All arrangements keep the order of terms, so results are equal.

`apart`: a sum's operands, unless cheap, are computed into arrays before the sum. `nest`: the nest of a sum for
the extents of the loops around the sum and over its terms.
"""


def arrangement_of(choice: str) -> LoopArrangement:
    """The arrangement named by a tuning record."""
    return Tiling.parse(choice) if choice.startswith(f"{TILES} ") else Blocking.parse(choice)


def _fits(factors: Sequence[int], loops: Sequence[int]) -> bool:
    return len(factors) == len(loops) and not any(size % turns for turns, size in zip(factors, loops, strict=True))


def _in_order(nest: Nest, over: Sequence[int]) -> bool:
    """True if terms keep their order: all loops inside a split loop over terms must be innermost entirely."""
    split = next((place for place, turns in enumerate(nest.terms) if turns > 1), len(over))
    return all(turns == size for turns, size in list(zip(nest.terms, over, strict=True))[split + 1 :])


def _times(factors: Sequence[int]) -> str:
    return "x".join(map(str, factors)) or "-"


def _factors(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split("x")))


def _unreadable(choice: str) -> NpukitError:
    return NpukitError(f"{choice!r} is no arrangement of these loops", tries=["remove the file of tuning results"])
