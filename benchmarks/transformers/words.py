"""The tokenizer of SmolLM2: bytes as letters, words by a pattern, and parts joined in the order of ranked pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

LETTERS = r"[^\W\d_]"
WORDS = re.compile(rf"'(?:s|t|re|ve|m|ll|d)| ?{LETTERS}+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""Pattern of words as in GPT-2. Each digit is a word of its own."""


def letters_of_bytes() -> dict[int, str]:
    """A letter for each byte: its own character if printable, else the next character above all bytes."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + place) for place, byte in enumerate(hidden)}


@dataclass(frozen=True)
class Tokenizer:
    words: Sequence[str]
    merges: Sequence[str]

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def _ranks(self) -> Mapping[tuple[str, ...], int]:
        return {tuple(pair.split(" ")): rank for rank, pair in enumerate(self.merges)}

    @cached_property
    def _letters(self) -> Mapping[int, str]:
        return letters_of_bytes()

    def tokens(self, text: str) -> list[int]:
        pieces = (word for part in re.split(r"(\d)", text) for word in self._split(part))
        return [self._numbers[part] for piece in pieces for part in self._joined(piece)]

    def text(self, tokens: Sequence[int]) -> str:
        bytes_of = {letter: byte for byte, letter in self._letters.items()}
        letters = "".join(self.words[token] for token in tokens)
        return bytes(bytes_of[letter] for letter in letters).decode(errors="replace")

    def _split(self, part: str) -> Iterator[str]:
        found = [part] if part.isdigit() else WORDS.findall(part)
        return ("".join(self._letters[byte] for byte in word.encode()) for word in found)

    def _joined(self, word: str) -> list[str]:
        """The parts of a word, after joining the lowest-ranked pair until no ranked pair is left."""
        parts = list(word)
        while len(parts) > 1:
            best = min(pairwise(parts), key=lambda pair: self._ranks.get(pair, len(self.merges)))
            if best not in self._ranks:
                return parts
            parts = list(_with_joined(parts, best))
        return parts


def _with_joined(parts: Sequence[str], pair: tuple[str, str]) -> Iterator[str]:
    place = 0
    while place < len(parts):
        joined = tuple(parts[place : place + 2]) == pair
        yield "".join(pair) if joined else parts[place]
        place += 2 if joined else 1
