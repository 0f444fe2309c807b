"""Sizes of the firmware's structures. The headers state them in static assertions, which every compiler checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from npukit.data import data_folder

WORD = 4
"""Bytes of a word: the most that an access of the core reads, and the alignment of lists of structures."""

_ASSERTED = re.compile(r"sizeof\(struct (\w+)\) == (\d+)")


@cache
def stated_sizes() -> Mapping[str, int]:
    """The bytes of each structure by name."""
    headers = sorted(data_folder("firmware").glob("*/*.h"))
    found = (_ASSERTED.findall(header.read_text(encoding="utf-8")) for header in headers)
    return {name: int(size) for stated in found for name, size in stated}


def bytes_of(struct: str) -> int:
    return stated_sizes()[struct]
