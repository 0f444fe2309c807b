"""A round of frames as a finding of `npukit tune` has it: a text from which it is planned again without a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.errors import NpukitError
from npukit.plan.tensors.boxes import Split

ROUNDS = "rounds"
_TEXT = re.compile(
    rf"{ROUNDS} on groups of (\d+) PEs in (\d+) lanes and (\d+) waves, room for (\d+) slices of (\d+) bytes: (.+)"
)


@dataclass(frozen=True)
class RoundChoice:
    """Groups of so many PEs, each op split so on every group; lanes, waves, and the slices of streamed constants."""

    pes: int
    splits: tuple[Split, ...]
    lanes: int
    waves: int
    slices: int
    slice_bytes: int

    def __str__(self) -> str:
        return (
            f"{ROUNDS} on groups of {self.pes} PEs in {self.lanes} lanes and {self.waves} waves,"
            f" room for {self.slices} slices of {self.slice_bytes} bytes: {spelled_splits(self.splits)}"
        )

    @classmethod
    def parse(cls, text: str) -> RoundChoice:
        match = _TEXT.fullmatch(text)
        if match is None or "0" in match.groups()[:5]:
            raise unreadable(text)
        pes, lanes, waves, slices, slice_bytes = map(int, match.groups()[:5])
        return cls(pes, read_splits(match[6], text), lanes, waves, slices, slice_bytes)


def spelled_splits(splits: Sequence[Split]) -> str:
    return " ".join("x".join(map(str, split)) or "-" for split in splits)


def read_splits(part: str, choice: str) -> tuple[Split, ...]:
    """The splits that a part of a choice spells."""
    try:
        found = tuple(() if word == "-" else tuple(map(int, word.split("x"))) for word in part.split())
    except ValueError as error:
        raise unreadable(choice) from error
    if any(number < 1 for split in found for number in split):
        raise unreadable(choice)
    return found


def unreadable(choice: str) -> NpukitError:
    return NpukitError(f"{choice!r} is no finding of npukit tune", tries=["remove the file of tuning results"])
