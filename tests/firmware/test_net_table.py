"""The loop through a table of steps, on random tables, against the meaning of each row in net.h."""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware.host import host_library
from helpers import CHECKOUT

Kind = Literal[
    "END",
    "WAIT",
    "SEND",
    "SIGNAL",
    "SIGNALS",
    "TO",
    "FETCH",
    "PAGE",
    "PATCH",
    "RESTORE",
    "JOIN",
    "AGAIN",
    "RUN",
    "SUBMIT",
    "LINKED",
    "DRIVE",
    "CALL",
    "ALSO",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
CALLED = (
    "WAIT",
    "SEND",
    "SIGNAL",
    "SIGNALS",
    "COMMAND",
    "CHAIN",
    "SUBMIT",
    "JOIN",
    "CORE",
    "DRIVER",
    "BEGIN",
    "END",
    "EVENT",
    "RESTORE",
    "FETCH",
    "FETCHED",
)
FRAME_END = 0xFFFF
COMMAND_BYTES = 16
BELOW_4_GB = 0x40
"""`MAP_32BIT` of Linux on x86-64: a table's addresses have 32 bits."""

Call = tuple[str, int, int, int]


@dataclass(frozen=True)
class Row:
    kind: Kind
    flag: int = 0
    count: int = 0
    what: int = 0

    def __bytes__(self) -> bytes:
        return struct.pack("<BBHI", KINDS.index(self.kind), self.flag % 256, self.count, self.what)


@dataclass
class Meaning:
    """Model of a table: the calls that net.h prescribes for the rows, one after the other."""

    rows: Sequence[Row]
    observed: bool
    memory: dict[int, int] = field(default_factory=dict)
    layer: int = 0

    def calls(self) -> Iterator[Call]:
        before = None
        for number, row in enumerate(self._unrolled()):
            if not (before and before.kind == row.kind == "PATCH"):  # the patches of a command are one step
                yield "EVENT", number, 0, 0
            self._patch(row)
            yield from self._row(row)
            before = row
        yield "EVENT", FRAME_END, 0, 0

    def _unrolled(self) -> Iterator[Row]:
        for row in self.rows:
            if row.kind == "AGAIN":
                yield from self.rows[row.what : row.what + row.count]
            elif row.kind != "END":
                yield row

    def _row(self, row: Row) -> Iterator[Call]:
        match row.kind:
            case "WAIT":
                yield "WAIT", row.flag, row.count, 0
            case "SEND":
                yield "SEND", row.what, 0, 0
            case "SIGNAL":
                chip = 0x40000000 if row.what & 1 << 17 else 0
                yield "SIGNAL", chip + row.count, self._told(row), 0
            case "SIGNALS":
                following = self._behind(row)
                yield "SIGNALS", following.what, self._told(row), row.count
            case "FETCH":
                yield "FETCH", row.what, self._behind(row).what, row.count
            case "PAGE" if row.count:
                yield "FETCHED", 0, 0, 0
            case "RESTORE":
                yield "RESTORE", row.what, row.count, 0
            case "JOIN":
                yield "JOIN", 0, 0, 0
            case "RUN" | "SUBMIT" | "LINKED" | "DRIVE" | "CALL" | "ALSO":
                yield from self._layer(row)

    def _patch(self, row: Row) -> None:
        run = row
        while run.kind == "PATCH":
            run = self._behind(run)
        if run is not row:
            self.memory[run.what + 4 * row.flag] = row.what

    def _behind(self, row: Row) -> Row:
        return next(self.rows[i + 1] for i, each in enumerate(self.rows) if each is row)

    @staticmethod
    def _told(row: Row) -> int:
        own = 0 if row.what & 1 << 16 else 0xFF
        return row.flag | own << 8 | (row.what & 0xFFFF) << 16

    def _layer(self, row: Row) -> Iterator[Call]:
        if row.kind == "ALSO":
            yield from () if self.observed else self._called(row)
        elif self.observed:
            yield "BEGIN", 0, 0, 0
            yield from self._alone(row)
            yield "END", self.layer % 2**32, 0, 0
        else:
            yield from self._deployed(row)
        self.layer += row.flag

    @staticmethod
    def _called(row: Row) -> Iterator[Call]:
        yield "DRIVER" if row.kind == "DRIVE" else "CORE", row.count, row.what, 0

    def _alone(self, row: Row) -> Iterator[Call]:
        if row.kind == "DRIVE":
            yield from self._called(row)
            yield "JOIN", 0, 0, 0
            return
        if row.kind == "CALL":
            yield from self._called(row)
            while (row := self._behind(row)).kind == "ALSO":
                yield from self._called(row)
            return
        for place in range(row.what, row.what + COMMAND_BYTES * row.count, COMMAND_BYTES):
            yield "COMMAND", place, 0, self.memory.get(place + 4, 0)

    def _deployed(self, row: Row) -> Iterator[Call]:
        if row.kind in ("DRIVE", "CALL"):
            yield from self._called(row)
        elif row.kind != "LINKED":
            yield "CHAIN" if row.kind == "RUN" else "SUBMIT", row.what, 0, self.memory.get(row.what + 4, 0)


@dataclass(frozen=True)
class Loop:
    """The compiled loop, and memory for commands at addresses of 32 bits."""

    library: ctypes.CDLL
    memory: mmap.mmap
    base: int

    def run(
        self,
        rows: Sequence[Row],
        observed: bool,
        fails: int = 0,
        status: int = -7,
        pages: Mapping[int, Sequence[Row]] = {},
    ) -> tuple[int, list[Call]]:
        """Run a table. `status`: result of the failing call. `pages`: rows outside the table, by memory offset."""
        self.memory[:] = bytes(len(self.memory))
        for offset, page in pages.items():
            data = b"".join(map(bytes, page))
            self.memory[offset : offset + len(data)] = data
        table = b"".join(map(bytes, rows))
        status = self.library.run_table(table, int(observed), fails, status)
        made = ctypes.POINTER(ctypes.c_uint32)()
        count = self.library.calls_made(ctypes.byref(made))
        words = made[: 4 * count]
        calls = (words[i : i + 4] for i in range(0, 4 * count, 4))
        return status, [(CALLED[who], first, second, held) for who, first, second, held in calls]


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Loop:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("needs memory below 4 GB, which Linux on x86-64 gives")
    folder = tmp_path_factory.mktemp("table")
    own = CHECKOUT / "tests" / "firmware" / "table"
    library = host_library(folder, "table/net_table.c", own / "written.c", includes=[own, "include", "noc"])
    memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | BELOW_4_GB)
    return Loop(library, memory, ctypes.addressof(ctypes.c_char.from_buffer(memory)))


COMMANDS = 8
PAGES = 1024, 2048, 3072
bytes_ = st.integers(0, 255)
tags = st.integers(0, 0x3FFFF)
places = st.integers(0, COMMANDS - 1)


def row(kind: Kind, **members: st.SearchStrategy[int]) -> st.SearchStrategy[list[Row]]:
    return st.builds(lambda **values: [Row(kind, **values)], **members)


def chains(base: int) -> st.SearchStrategy[list[Row]]:
    """One to three layers of a chain; patches may precede the first."""
    patches = st.lists(st.tuples(st.just(1), st.integers(0, 2**32 - 1)), max_size=2)
    kinds: st.SearchStrategy[Kind] = st.sampled_from(["RUN", "SUBMIT"])
    return st.builds(
        lambda patched, kind, place, onward, linked: [
            *(Row("PATCH", flag=word, what=value) for word, value in patched),
            Row(kind, flag=onward, count=1, what=base + COMMAND_BYTES * place),
            *(Row("LINKED", flag=1, count=2, what=base) for _ in range(linked)),
        ],
        patches,
        kinds,
        places,
        st.integers(-3, 3),
        st.integers(0, 2),
    )


def calls() -> st.SearchStrategy[list[Row]]:
    """A layer of one or two functions."""
    given = st.tuples(bytes_, st.integers(0, 2**32 - 1))
    return st.builds(
        lambda onward, first, others: [Row("CALL", onward, *first), *(Row("ALSO", 0, *each) for each in others)],
        st.integers(-3, 3),
        given,
        st.lists(given, max_size=1),
    )


def units(base: int) -> st.SearchStrategy[list[Row]]:
    """Rows of one operation."""
    return st.one_of(
        row("WAIT", flag=bytes_, count=st.integers(1, 9)),
        row("SEND", what=st.integers(0, 2**32 - 1)),
        row("SIGNAL", flag=bytes_, count=bytes_, what=tags),
        st.builds(
            lambda flag, count, tag, to: [Row("SIGNALS", flag, count, tag), Row("TO", what=to)],
            bytes_,
            st.integers(1, 9),
            tags,
            st.integers(0, 2**32 - 1),
        ),
        st.builds(
            lambda size, dram, to: [Row("FETCH", 0, size, dram), Row("TO", what=to)],
            st.integers(1, 2**16 - 1),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**32 - 1),
        ),
        row("JOIN"),
        row("RESTORE", count=bytes_, what=st.integers(0, 2**32 - 1)),
        calls(),
        row("DRIVE", flag=st.integers(-3, 3), count=bytes_, what=st.integers(0, 2**32 - 1)),
        chains(base),
    )


@st.composite
def tables(draw: st.DrawFn, base: int) -> list[Row]:
    """Operations, some followed by repeated stretches of earlier operations."""
    rows: list[Row] = []
    begins: list[int] = []
    for unit in draw(st.lists(units(base), max_size=8)):
        begins.append(len(rows))
        rows += unit
    ends = [*begins[1:], len(rows)]
    for _ in range(draw(st.integers(0, 2)) if begins else 0):
        first = draw(st.integers(0, len(begins) - 1))
        last = draw(st.integers(first, len(begins) - 1))
        rows.append(Row("AGAIN", count=ends[last] - begins[first], what=begins[first]))
    return [*rows, Row("END")]


@pytest.mark.exhaustive
@given(data=st.data(), observed=st.booleans())
def test_every_row_does_what_it_means(loop: Loop, data: st.DataObject, observed: bool) -> None:
    rows = data.draw(tables(loop.base))
    status, calls = loop.run(rows, observed)
    assert status == 0
    assert calls == list(Meaning(rows, observed).calls())


@pytest.mark.exhaustive
@given(data=st.data(), observed=st.booleans())
def test_pages_are_gone_through_in_their_order(loop: Loop, data: st.DataObject, observed: bool) -> None:
    """Two pages follow the table, in two places, then a third place holds the end."""
    stretches = data.draw(st.lists(st.lists(units(loop.base), max_size=3), min_size=2, max_size=2))
    first, second = ([row for unit in units for row in unit] for units in stretches)
    home = [Row("WAIT", 1, 2), Row("PAGE", count=1, what=loop.base + PAGES[0])]
    behind = [Row("WAIT", 3, 4), Row("END")]
    pages = {
        PAGES[0]: [*first, Row("PAGE", count=1, what=loop.base + PAGES[1])],
        PAGES[1]: [*second, Row("PAGE", what=loop.base + PAGES[2])],
        PAGES[2]: behind,
    }
    status, calls = loop.run(home, observed, pages=pages)
    assert status == 0
    assert calls == list(Meaning([*home, *pages[PAGES[0]], *pages[PAGES[1]], *behind], observed).calls())


@given(data=st.data(), observed=st.booleans())
def test_a_frame_ends_with_the_first_error(loop: Loop, data: st.DataObject, observed: bool) -> None:
    rows = data.draw(tables(loop.base))
    expected = list(Meaning(rows, observed).calls())
    can_fail = [n for n, call in enumerate(expected) if call[0] not in ("BEGIN", "END", "EVENT", "RESTORE", "CORE")]
    if not can_fail:
        return
    failing = data.draw(st.sampled_from(can_fail))
    status, calls = loop.run(rows, observed, fails=failing + 1)
    assert status == -7
    assert calls == expected[: failing + 1]


GIVEN_UP = -1


@pytest.mark.parametrize(("status", "awaited"), [(GIVEN_UP, True), (-7, False)])
def test_a_frame_that_is_broken_off_leaves_no_page_on_its_way(loop: Loop, status: int, awaited: bool) -> None:
    """After an error of the engine nothing arrives any more."""
    rows = [Row("FETCH", count=16), Row("TO"), Row("WAIT", 1, 1), Row("PAGE", count=1), Row("END")]
    waits = 1 + [call[0] for call in Meaning(rows, observed=False).calls()].index("WAIT")
    found, calls = loop.run(rows, observed=False, fails=waits, status=status)
    assert found == status
    assert [call[0] for call in calls[waits:]] == ["FETCHED"] * awaited
