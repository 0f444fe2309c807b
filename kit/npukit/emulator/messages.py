"""Last messages on the network-on-chip, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from npukit.board.noc import DRAM, NO_FLAG

Note = Mapping[str, int]
"""A message in the worker's notes: `struct note` in npukit_emulator/core/harm.h."""

_SHOWN = 6
_NO_MESSAGE = 0xFFFF
"""Tag of the firmware's copies for the host: `NOC_NO_MESSAGE`."""
_ARRIVED = 1
_KINDS = ("left", "arrived", "was lost", "leaves late", "comes again", "arrived damaged")
"""Words in the order of `enum note_kind` in the same file."""


def last_messages(notes: Sequence[Note], pes: Iterable[int]) -> tuple[str, ...]:
    """Lines for the last messages of these PEs, and the last messages harmed by a plan of faults, in order of time."""
    wanted = set(pes)
    concerned = [note for note in notes if wanted & {note["owner"], note["source"], note["destination"]}]
    harmed = islice((note for note in concerned if note["kind"] > _ARRIVED), _SHOWN)
    earlier = [note for note in harmed if note not in concerned[:_SHOWN]]
    return tuple(_line(note) for note in reversed([*concerned[:_SHOWN], *earlier]))


def _line(note: Note) -> str:
    content = f"{note['bytes']} bytes" if note["bytes"] else "a signal"
    flag = "" if note["flag"] == NO_FLAG else f", flag {note['flag']}"
    way = f"{place(note['source'])} to {place(note['destination'])} at {note['address']:#07x}{flag}"
    return f"cycle {note['time']:,}: {message(note['tag'])}, {content} from {way}, {_KINDS[note['kind']]}"


def message(tag: int) -> str:
    return "a copy" if tag == _NO_MESSAGE else f"message {tag}"


def place(number: int) -> str:
    return f"PE {number}" if number < DRAM else f"the DRAM of chip {number - DRAM}"
