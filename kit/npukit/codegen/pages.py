"""Pages of a long program whose last orders lie in DRAM: the rows of some steps, with their commands and descriptors.

A PE holds two pages at a time. Pages alternate between two places in memory, so each page's address is fixed. Records
for a single page are part of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npukit.accel.interface import Address
from npukit.codegen.constants import Constants, Fields, Number, Record, Value, lay_out
from npukit.codegen.parts import Part
from npukit.plan.ir.plan import Join, Restore, Send, Wait
from npukit.plan.predict.memory import STEP_BYTES, aligned

Piece = Part | Join | Restore | Send | Wait
"""A step of the plan, with a `Part` for each compute step."""

Run = Sequence[Piece]
"""Pieces that start together: a chain of commands, or of messages."""

PAGE_ROWS = "net_page"


@dataclass(frozen=True)
class Room:
    """The room for two pages of `bytes` each in the buffer `symbol`. `dram`: the address of the first page in DRAM."""

    symbol: str
    bytes: int
    dram: int

    def place(self, page: int) -> Number:
        return Number(Address(self.symbol, page % 2 * self.bytes))


@dataclass(frozen=True)
class Page:
    """A page: rows of the table, followed by the records that the rows refer to."""

    rows: tuple[Fields, ...]
    records: tuple[Record, ...]

    @cached_property
    def _laid_out(self) -> Constants:
        return lay_out([], self.records)

    @property
    def bytes(self) -> int:
        return aligned(STEP_BYTES * len(self.rows)) + self._laid_out.bytes

    def members(self) -> Iterator[tuple[int, Record]]:
        """The records of the page with their offsets."""
        yield 0, Record(PAGE_ROWS, "net_step", self.rows, STEP_BYTES // 2, STEP_BYTES, "", listed=True)
        behind, offsets = aligned(STEP_BYTES * len(self.rows)), self._laid_out.offsets_by_symbol
        yield from ((behind + offsets[record.symbol], record) for record in self.records)


def linked(pages: Sequence[Page], room: Room, home: Number) -> list[Page]:
    """The pages, each with rows that fetch the next page and continue there. The last page continues at `home`."""
    found: list[Page] = []
    for number in reversed(range(len(pages))):
        page = pages[number]
        begin = fetch(found[-1].bytes, room, number + 1) if found else ()
        end = row("NET_PAGE", count=1, what=room.place(number + 1)) if found else row("NET_PAGE", what=home)
        found.append(replace(page, rows=(*begin, *page.rows, end)))
        assert found[-1].bytes <= room.bytes, "the plan's pages have room for their steps"
    return found[::-1]


def fetch(size: int, room: Room, number: int) -> tuple[Fields, Fields]:
    """The rows that fetch a page."""
    from_dram = row("NET_FETCH", count=size, what=room.dram + number * room.bytes)
    return from_dram, row("NET_TO", what=room.place(number))


def row(kind: str, flag: int | str = 0, count: Value = 0, what: Value = 0) -> Fields:
    """A row of a table (`struct net_step`)."""
    return ("kind", kind), ("flag", flag), ("count", count), ("what", what)
