"""Line numbers of a board file's fields, for errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_HEADER = re.compile(r"^\s*\[(\[?)([\w.-]+)\]?\]")
_KEY = re.compile(r"^\s*([\w-]+)\s*=")

Where = tuple[str | int, ...]


def line_of(text: str, where: Sequence[str | int]) -> int | None:
    """Line number of a field, by names and list indices; for a missing field, of the table. None if the file lacks
    both, as for a field inherited through `like`."""
    places = dict(_places(text))
    within = (tuple(where[:length]) for length in range(len(where), 0, -1))
    return next((places[part] for part in within if part in places), None)


def _places(text: str) -> Iterator[tuple[Where, int]]:
    """Tables and fields, each with its line number."""
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
