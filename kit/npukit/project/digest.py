"""The digest by which the firmware tells whether memory still holds what was loaded (`firmware/rpc/digest.c`)."""

from __future__ import annotations

from array import array
from functools import lru_cache

FACTOR = 0xFFFFFF4E
"""The largest for which FACTOR * 2^32 - 1 is a safe prime."""

_START, _WORD = 1, 4
_LOW = 0xFFFF_FFFF


@lru_cache(maxsize=256)
def digest(data: bytes) -> int:
    """A polynomial of the words of `data`, the last one filled with zeros."""
    state = _START
    for word in array("I", data.ljust(-(-len(data) // _WORD) * _WORD, b"\0")):
        state = FACTOR * (state & _LOW) + (state >> 32) + word
    return state


def word_of(digest: int) -> int:
    """The word whose digest this is."""
    return digest - FACTOR * _START
