"""The line of a board file that a fault is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"^\s*\[(\[?)([\w.-]+)\]?\]")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")

Where = tuple[str | int, ...]


def line_of(text: str, where: Sequence[str | int]) -> int | None:
    """The number of the line of a field, by its names and places in lists; else that of the table it would be in.

    None if neither is in this file, as of a field that is taken from the file it is like.
    """
    places = dict(_places(text))
    within = (tuple(where[:length]) for length in range(len(where), 0, -1))
    return next((places[part] for part in within if part in places), None)


def _places(text: str) -> Iterator[tuple[Where, int]]:
    """Tables and their fields, each with its line."""
    table, counts = Where(), Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            first, *rest = header[2].split(".")
            counts[first] += header[1] == "["
            table = (first, *([counts[first] - 1] if counts[first] else []), *rest)
            yield table, number
        elif key:
            yield (*table, key[1]), number
