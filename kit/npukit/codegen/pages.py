"""Pages of a long program whose orders lie in DRAM: the rows of some steps, with their commands and descriptors.

A PE has two at a time. What a page refers to of its own is in the page, so that it lies where the page before the last
one did, whichever that was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npukit.accel.interface import Address
from npukit.codegen.constants import Constants, Fields, Number, Record, Value, lay_out
from npukit.codegen.parts import Part
from npukit.plan.ir.plan import Join, Restore, Send, Wait
from npukit.plan.predict.memory import ROWS_OF_A_PAGE, STEP_BYTES, aligned

Piece = Part | Join | Restore | Send | Wait
"""A step of the plan, computes as parts."""

Run = Sequence[Piece]
"""Pieces that are started together: chains of commands, of messages."""

PAGE_ROWS = "net_page"


@dataclass(frozen=True)
class Room:
    """The room for two pages in the buffer of this symbol, of so many bytes each, and where in DRAM the first lies."""

    symbol: str
    bytes: int
    dram: int

    @property
    def most(self) -> int:
        """The bytes that the steps of a page may take."""
        return self.bytes - ROWS_OF_A_PAGE * STEP_BYTES

    def place(self, page: int) -> Number:
        return Number(Address(self.symbol, page % 2 * self.bytes))


@dataclass(frozen=True)
class Page:
    """A page: its rows, and behind them the records that they refer to."""

    rows: tuple[Fields, ...]
    records: tuple[Record, ...]

    @cached_property
    def _laid_out(self) -> Constants:
        return lay_out([], self.records)

    @property
    def bytes(self) -> int:
        return aligned(STEP_BYTES * len(self.rows)) + self._laid_out.bytes

    def members(self) -> Iterator[tuple[int, Record]]:
        """Its records, each with its offset."""
        yield 0, Record(PAGE_ROWS, "net_step", self.rows, STEP_BYTES // 2, STEP_BYTES, "", listed=True)
        behind = aligned(STEP_BYTES * len(self.rows))
        offsets = self._laid_out.offsets_by_symbol
        yield from ((behind + offsets[record.symbol], record) for record in self.records)


def divided(runs: Sequence[Run], size: Callable[[Run], int], most: int) -> Iterator[Run]:
    """The runs, those that are too large for a page piece by piece."""
    for run in runs:
        submitted = isinstance(run[0], Part) and run[0].submitted
        yield from ([run] if submitted or size(run) <= most else [[piece] for piece in run])


def pages_of(runs: Sequence[Run], sizes: Sequence[int], most: int) -> Iterator[range]:
    """The numbers of the runs of each page: as many as it has room for.

    What an accelerator has been started with stays in its page until it is done.
    """
    first, taken = 0, 0
    for unit in _units(runs):
        wanted = sum(sizes[index] for index in unit)
        assert wanted <= most, "the plan has pages large enough for each step"
        if taken + wanted > most:
            yield range(first, unit.start)
            first, taken = unit.start, 0
        taken += wanted
    yield range(first, len(runs))


def _units(runs: Sequence[Run]) -> Iterator[range]:
    first, running = 0, set[str]()
    for index, run in enumerate(runs):
        for piece in run:
            if isinstance(piece, Part) and piece.submitted:
                running.add(piece.engine.name)
            if isinstance(piece, Join):
                running.discard(piece.engine)
        if not running:
            yield range(first, index + 1)
            first = index + 1


def linked(pages: Sequence[Page], room: Room, home: Number) -> list[Page]:
    """The pages, each with the rows that fetch the next one and go on there; the last one goes on at `home`."""
    found: list[Page] = []
    for number in reversed(range(len(pages))):
        page = pages[number]
        begin = fetch(found[-1].bytes, room, number + 1) if found else ()
        end = row("NET_PAGE", count=1, what=room.place(number + 1)) if found else row("NET_PAGE", what=home)
        found.append(replace(page, rows=(*begin, *page.rows, end)))
    return found[::-1]


def fetch(size: int, room: Room, number: int) -> tuple[Fields, Fields]:
    """The rows that fetch a page."""
    from_dram = row("NET_FETCH", count=size, what=room.dram + number * room.bytes)
    return from_dram, row("NET_TO", what=room.place(number))


def row(kind: str, flag: int | str = 0, count: int = 0, what: Value = 0) -> Fields:
    """A row of a table (`struct net_step`)."""
    return ("kind", kind), ("flag", flag), ("count", count), ("what", what)
