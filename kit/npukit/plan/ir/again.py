"""Compression of a plan's text: a run of lines refers to an earlier run, equal but for frames and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_COUNTED = re.compile(r"(?<=@)\d+|(?<=%)\d+|(?<=\bframe )\d+|(?<=^send )\d+")
_AGAIN = re.compile(r"again (\d+)-(\d+), frames (-?\d+), micro-batches (-?\d+), messages (-?\d+)")

SHORTEST = 3
"""Minimum number of lines in a repetition."""

TRIED = 4
"""Number of earlier runs with the same beginning to compare: the latest ones. The longest is taken."""


@dataclass(frozen=True)
class Again:
    """A repetition of the lines `first` to `last`, with offsets added to frames, micro-batches and message numbers."""

    first: int
    last: int
    frames: int
    micro_batches: int
    messages: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        added = f"frames {self.frames}, micro-batches {self.micro_batches}, messages {self.messages}"
        return f"again {self.first}-{self.last}, {added}"

    @classmethod
    def read(cls, text: str) -> Again | None:
        match = _AGAIN.fullmatch(text)
        return cls(*map(int, match.groups())) if match else None

    def of(self, line: str) -> str:
        """The repeated form of a line."""
        added = {"@": self.frames, "%": self.micro_batches, "send ": self.messages}
        return _COUNTED.sub(lambda found: str(int(found[0]) + added[_kind(line, found.start())]), line)


def _kind(line: str, place: int) -> str:
    if place == len("send "):
        return "send "
    return "%" if line[place - 1] == "%" else "@"


def runs(lines: Sequence[str]) -> Iterator[str | Again]:
    """The lines, with long repetitions replaced by `Again`."""
    forms, known, at = [_form(line) for line in lines], dict[tuple[str, ...], list[int]](), 0
    while at < len(lines):
        key = tuple(form for form, _ in forms[at : at + SHORTEST])
        earlier = [_run(forms, first, at) for first in known.get(key, [])[-TRIED:]]
        found = max(earlier, key=lambda run: run.count, default=None)
        step = found.count if found and found.count >= SHORTEST else 1
        yield found if found and step > 1 else lines[at]
        for place in range(at, at + step):
            known.setdefault(tuple(form for form, _ in forms[place : place + SHORTEST]), []).append(place)
        at += step


_Counts = tuple[tuple[str, int], ...]


def _form(line: str) -> tuple[str, _Counts]:
    """A line without counted numbers, and the numbers by kind."""
    counts = tuple((_kind(line, found.start()), int(found[0])) for found in _COUNTED.finditer(line))
    return _COUNTED.sub("", line), counts


def _run(forms: Sequence[tuple[str, _Counts]], first: int, at: int) -> Again:
    """The longest run from line `at` on that repeats the run from line `first` on."""
    added: dict[str, int] = {}
    last = first
    while at + last - first < len(forms) and last < at and _is_again(forms[last], forms[at + last - first], added):
        last += 1
    return Again(first, last - 1, added.get("@", 0), added.get("%", 0), added.get("send ", 0))


def _is_again(before: tuple[str, _Counts], now: tuple[str, _Counts], added: dict[str, int]) -> bool:
    """True if line `now` repeats line `before` with the offsets `added`. A kind of number new to `added` sets its
    offset."""
    if before[0] != now[0]:
        return False
    more = dict(added)
    for (kind, one), (_, other) in zip(before[1], now[1], strict=True):
        if more.setdefault(kind, other - one) != other - one:
            return False
    added.update(more)
    return True
