"""A batch of frames as a tuning record has it: a text from which it is planned again without a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npukit.errors import NpukitError
from npukit.plan.tensors.boxes import Split

BATCHES = "batches"
_TEXT = re.compile(
    rf"{BATCHES} on groups of (\d+) PEs with (\d+) interleaved frames and (\d+) micro-batches,"
    r" room for (\d+) weight tiles of (\d+) bytes: (.+)"
)


@dataclass(frozen=True)
class BatchSpec:
    """Groups of so many PEs, each op split so on every group; frames, and the weight tiles of streamed constants."""

    pes: int
    splits: tuple[Split, ...]
    interleaved: int
    micro_batches: int
    weight_tiles: int
    weight_tile_bytes: int

    def __str__(self) -> str:
        return (
            f"{BATCHES} on groups of {self.pes} PEs with {self.interleaved} interleaved frames"
            f" and {self.micro_batches} micro-batches,"
            f" room for {self.weight_tiles} weight tiles of {self.weight_tile_bytes} bytes:"
            f" {spelled_splits(self.splits)}"
        )

    @classmethod
    def parse(cls, text: str) -> BatchSpec:
        match = _TEXT.fullmatch(text)
        if match is None or "0" in match.groups()[:5]:
            raise unreadable(text)
        pes, interleaved, micro_batches, weight_tiles, weight_tile_bytes = map(int, match.groups()[:5])
        return cls(pes, read_splits(match[6], text), interleaved, micro_batches, weight_tiles, weight_tile_bytes)


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
    return NpukitError(f"{choice!r} is no tuning record", tries=["remove the file of tuning results"])
