"""A long program as a table: one row for each step, interpreted by `net_run` (`struct net_step` in net.h).

The C is the same for all PEs. The table is data, and most of it is each PE's own data. The last orders of a very long
program are pages in DRAM: rows of some steps, with their commands and descriptors. A PE holds two pages at a time,
which alternate between two places in memory, so each page's address is fixed. Records for a single page are part of the
page.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npukit.accel.interface import Address, Commands, Field
from npukit.codegen.constants import Constants, Fields, Number, Record, Value, lay_out
from npukit.codegen.frame import SendStep, WaitStep
from npukit.codegen.messages import Descriptors
from npukit.codegen.parts import Part, arguments_of, callees_of, chain_records, commands_of
from npukit.codegen.states import STATES
from npukit.plan.emit.replay import Stretch, stretches
from npukit.plan.ir.plan import Join, Restore, Send, Step, Wait
from npukit.plan.predict.memory import STEP_BYTES, aligned
from npukit.structs import WORD

TABLE = "net_steps"

ROWS_OF_A_FETCH = 2
"""Rows for the fetch of a page."""


@dataclass(frozen=True)
class Template:
    """A command shared by several pieces of an op. Each piece first sets the differing members."""

    symbol: str
    patched: tuple[str, ...]


Templates = Mapping[str, Template]
"""Templates by the tile's name."""


def templates_of(runs: Sequence[Run]) -> Templates:
    """The templates of pieces with streamed constants: there may be hundreds of pieces, equal but for addresses."""
    alike: dict[object, list[Part]] = {}
    for part in (run[0] for run in runs if len(run) == 1):
        if isinstance(part, Part) and part.streamed and len(commands_of(part)) == 1:
            numbers = tuple((n, None if isinstance(v, Address) else v) for n, v in _fields(part).items())
            alike.setdefault((part.op, numbers), []).append(part)
    return {part.tile.name: template for parts in alike.values() for part, template in _shared(parts)}


def _shared(parts: Sequence[Part]) -> Iterator[tuple[Part, Template]]:
    """The parts that share a template. Empty if sharing would save nothing."""
    fields = [_fields(part) for part in parts]
    patched = tuple(name for name, value in fields[0].items() if any(other[name] != value for other in fields))
    form = parts[0].engine.commands
    assert form is not None
    if len(parts) > 1 and STEP_BYTES * len(patched) < form.bytes // 2:
        template = Template(commands_of(parts[0])[0], patched)
        yield from ((part, template) for part in parts)


def _fields(part: Part) -> dict[str, Field]:
    code = part.lowered.code
    assert isinstance(code, Commands)
    return dict(code.structs[0].fields)


@dataclass(frozen=True)
class RunRows:
    """The records of a run, and its rows of the table."""

    records: tuple[Record, ...]
    rows: tuple[Fields, ...]
    arguments: tuple[Record, ...] = ()
    """The arguments of the run's calls, always in memory, even if the rows are in a page."""

    @classmethod
    def of(cls, run: Run, descriptors: Descriptors, templates: Templates) -> RunRows:
        records, first = tuple(_records(run, descriptors, templates)), run[0]
        if isinstance(first, Part) and not first.chained:
            return cls(records, tuple(_calls(first)), (arguments_of(first),))
        return cls(records, tuple(_rows(run, descriptors, templates)))


@dataclass(frozen=True)
class TableProgram:
    """A long program as runs. Signals are in separate runs from other messages. Equal runs are made once."""

    runs: Sequence[Run]
    likes: Sequence[int]
    """The kind of each run. Runs of the same kind are equal."""
    made: Mapping[int, RunRows]
    """The constants and rows of the first run of each kind."""
    stretches: Sequence[Stretch]
    before: tuple[Fields, ...] = ()
    behind: tuple[Fields, ...] = ()
    """Rows before and after those of the plan's steps."""
    room: Room | None = None
    cuts: tuple[range, ...] = ()
    """The runs of each page, if there is `room` for two pages. Runs before the first page stay in memory."""

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        alike: Sequence[Hashable],
        descriptors: Descriptors,
        room: Room | None = None,
        cuts: tuple[range, ...] = (),
    ) -> TableProgram:
        """The program of these runs. `alike`: a key of each run; runs with equal keys are made once. A run in a page is
        never shared, as each page has its own orders."""
        kept = cuts[0].start if cuts else len(runs)
        numbers: dict[Hashable, int] = {}
        alike = [*alike[:kept], *range(-len(runs), -kept)]
        likes = [numbers.setdefault(like, len(numbers)) for like in alike]
        firsts = dict(zip(reversed(likes), reversed(runs), strict=True))
        different = {like: firsts[like] for like in likes}
        templates = templates_of([firsts[like] for like in dict.fromkeys(likes[:kept])])
        made = {like: RunRows.of(run, descriptors, templates) for like, run in different.items()}
        again = stretches(likes[:kept], [len(made[like].rows) for like in likes[:kept]])
        return cls(runs, likes, made, again, room=room, cuts=cuts)

    def of_twin(self, steps: Sequence[Step], descriptors: Descriptors, room: Room | None) -> TableProgram:
        """The program of a PE that does the same with these steps: only messages differ."""
        runs: list[Sequence[Piece]] = []
        made, begin = dict(self.made), 0
        for like, run in zip(self.likes, self.runs, strict=True):
            sends = [step for step in steps[begin : begin + len(run)] if isinstance(step, Send)]
            if sends and made[like] is self.made[like]:
                made[like] = RunRows.of(sends, descriptors, {})
            runs.append(sends or run)
            begin += len(run)
        return replace(self, runs=runs, made=made, room=room)

    def enclosed(self, first: SendStep | WaitStep, last: SendStep | WaitStep) -> TableProgram:
        """The same program with a step before all others and one after all others."""
        return replace(self, before=(_step_row(first), *self.before), behind=(*self.behind, _step_row(last)))

    def records(self) -> Iterator[Record]:
        """The records, with the table itself behind all others."""
        for like in dict.fromkeys(self.likes[: self._kept]):
            yield from self.made[like].records
        for like in dict.fromkeys(self.likes):
            yield from self.made[like].arguments
        rows = list(self._rows_before_pages)
        if self.room:  # fetch the first page before, and continue there
            begin = fetch(self.pages[0].bytes, self.room, 0)
            rows = [*begin, *rows, row("NET_PAGE", count=1, what=self.room.place(0))]
        table = (*self.before, *rows, *self.behind, row("NET_END"))
        yield Record(TABLE, "net_step", table, STEP_BYTES // 2, STEP_BYTES, "the steps of a frame", listed=True)

    @property
    def _kept(self) -> int:
        """The number of runs before the first page."""
        return self.cuts[0].start if self.cuts else len(self.runs)

    @cached_property
    def pages(self) -> Sequence[Page]:
        """The pages of the program's orders, if these lie in DRAM."""
        if self.room is None:
            return ()
        runs = [[self.made[self.likes[number]] for number in cut] for cut in self.cuts]
        found = [
            Page(tuple(row for run in page for row in run.rows), tuple(each for run in page for each in run.records))
            for page in runs
        ]
        rows = ROWS_OF_A_FETCH + len(self._rows_before_pages) + 1
        return linked(found, self.room, Number(Address(TABLE, STEP_BYTES * (len(self.before) + rows))))

    def spans(self) -> Iterator[int]:
        """The number of the plan's steps in each row, in the order of execution. A run counts in its first row."""
        parts = [range(self._kept), *self.cuts]
        for part in parts:
            yield from [0] * ROWS_OF_A_FETCH if part is not parts[-1] else ()
            for number in part:
                yield from (len(self.runs[number]), *[0] * (len(self.made[self.likes[number]].rows) - 1))
            yield from [0] if self.cuts else ()

    @cached_property
    def _rows_before_pages(self) -> Sequence[Fields]:
        """The rows of the runs in memory. A repeated stretch takes a single row."""
        table: list[Fields] = []
        places: dict[int, int] = {}
        rows = [self.made[like].rows for like in self.likes]
        begin = len(self.before) + (ROWS_OF_A_FETCH if self.room else 0)
        for part in self.stretches:
            units = range(part.first, part.first + part.count)
            if part.again:
                table.append(row("NET_AGAIN", count=sum(len(rows[unit]) for unit in units), what=places[part.first]))
                continue
            for unit in units:
                places[unit] = begin + len(table)
                table += rows[unit]
        return table


def _records(run: Run, descriptors: Descriptors, templates: Templates) -> Iterable[Record]:
    """The records of a run. Signals need no descriptors, and pieces with a shared template no commands."""
    parts = [piece for piece in run if isinstance(piece, Part) and piece.chained]
    used = [templates[part.tile.name].symbol for part in parts if part.tile.name in templates]
    if used and used[0] not in commands_of(parts[0]):
        return []
    sends = [piece.message for piece in run if isinstance(piece, Send)]
    if sends and descriptors.is_signal(sends[0]):
        return [receivers for receivers in map(descriptors.receivers, sends) if receivers]
    return chain_records(parts) if parts else descriptors.chain(sends)


def _calls(part: Part) -> Iterator[Fields]:
    """A row for each call of a layer."""
    symbol, onward, place, callees = arguments_of(part).symbol, _onward(part), 0, callees_of(part)
    kind = "NET_DRIVE" if callees[0].checked else "NET_CALL"
    for callee in callees:
        yield row(kind, onward, callee, Number(Address(symbol, place)))
        kind, onward, place = "NET_ALSO", 0, place + WORD * len(callee.pointers)


def _rows(run: Run, descriptors: Descriptors, templates: Templates) -> Iterator[Fields]:
    first = run[0]
    if isinstance(first, Wait):
        yield row("NET_WAIT", flag=first.flag, count=first.count)
    elif isinstance(first, Join):
        yield row("NET_JOIN")
    elif isinstance(first, Restore):
        yield row("NET_RESTORE", count=len(first.buffers), what=Number(Address(STATES)))
    elif isinstance(first, Send):
        yield from _messages([piece.message for piece in run if isinstance(piece, Send)], descriptors)
    else:
        yield from _chain([piece for piece in run if isinstance(piece, Part)], templates)


def _messages(numbers: Sequence[int], descriptors: Descriptors) -> Iterator[Fields]:
    if not descriptors.is_signal(numbers[0]):
        yield row("NET_SEND", what=Number(Address(descriptors.first(numbers[0]))))
        return
    for number in numbers:
        signals, receivers = list(descriptors.signals(number)), descriptors.receivers(number)
        if receivers:
            _, flag, what = signals[-1]
            yield row("NET_SIGNALS", flag=flag, count=len(signals), what=what)
            yield row("NET_TO", what=Number(Address(receivers.symbol)))
            continue
        for pe, flag, what in signals:
            yield row("NET_SIGNAL", flag=flag, count=pe, what=what)


def _chain(parts: Sequence[Part], templates: Templates) -> Iterator[Fields]:
    """A row for each layer. The first row starts the chain; the other rows serve frames that run layer by layer."""
    kind = "NET_SUBMIT" if parts[0].submitted else "NET_RUN"
    for index, part in enumerate(parts):
        commands, template = commands_of(part), templates.get(part.tile.name)
        yield from _patches(part, template) if template else ()
        first = template.symbol if template else commands[0]
        kind = "NET_LINKED" if index else kind
        yield row(kind, flag=_onward(part), count=len(commands), what=Number(Address(first)))


def _patches(part: Part, template: Template) -> Iterator[Fields]:
    form = part.engine.commands
    assert form is not None
    for name in template.patched:
        value = _fields(part)[name]
        assert isinstance(value, Address)
        yield row("NET_PATCH", flag=f"offsetof(struct {form.struct}, {name}) / 4", what=Number(value))


def _onward(part: Part) -> int:
    """The distance to the next layer as a byte. It is negative after interleaved pieces of several tiles."""
    assert -128 <= part.onward < 128, f"{part.tile.name}: {part.onward} layers on"
    return part.onward % 256


def _step_row(step: SendStep | WaitStep) -> Fields:
    if isinstance(step, SendStep):
        return row("NET_SEND", what=Number(Address(step.symbol)))
    return row("NET_WAIT", flag=step.flag, count=step.count)


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
