"""Repeated stretches of a long program: runs of steps, equal down to the last address.

A table program stores each stretch once (`codegen/table.py`). Further micro-batches then take little memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npukit.board.noc import DRAM
from npukit.net.net import CORE
from npukit.plan.ir.plan import Compute, Join, PePlan, Plan, Restore, Send, Step, View, Wait


@dataclass(frozen=True)
class Stretch:
    """Units of a program from number `first` on. `again`: True for a repetition of stored units, False for the stored
    units."""

    first: int
    count: int
    again: bool


SHORTEST = (1, 4, 16, 64)
"""Candidates for the least number of units in a repetition. Scattered short repetitions keep long stretches from being
stored in a single piece."""


def stretches(keys: Sequence[Hashable], rows: Sequence[int]) -> list[Stretch]:
    """The division of a program into stretches with the fewest rows. `keys`: the key of each unit; equal units have
    equal keys. `rows`: the table rows of each unit.

    Repeated units must be stored in a single piece. The repetition takes a single row.
    """
    numbers: dict[Hashable, int] = {}
    numbered = [numbers.setdefault(key, len(numbers)) for key in keys]
    tried = [list(_stretches(numbered, rows, shortest)) for shortest in SHORTEST]
    return min(tried, key=lambda each: rows_of(each, rows))


def rows_of(found: Sequence[Stretch], rows: Sequence[int]) -> int:
    """The table rows of a program divided into these stretches."""
    return sum(1 if part.again else sum(rows[part.first : part.first + part.count]) for part in found)


def _stretches(keys: Sequence[int], rows: Sequence[int], shortest: int) -> Iterator[Stretch]:
    stored = _Stored(keys, shortest)
    at = begun = 0
    while at < len(keys):
        count, first = stored.longest(at)
        if count >= shortest and sum(rows[at : at + count]) > 1:
            if at > begun:
                yield Stretch(begun, at - begun, again=False)
            yield Stretch(first, count, again=True)
            at = begun = at + count
        else:
            stored.add(at)
            at += 1
    if at > begun:
        yield Stretch(begun, at - begun, again=False)


class _Stored:
    """The stored units of a program, indexed by the run of units that begins with each.

    A run has two units, or the largest power of two up to `shortest` if that is more; fewer at the end of the program.
    """

    def __init__(self, keys: Sequence[int], shortest: int) -> None:
        self._keys, self._is_stored = keys, [False] * len(keys)
        self._runs = _numbered_runs(keys, max(shortest, 2))
        self._by_run: dict[int, list[int]] = {}
        self._first: dict[int, int] = {}

    def add(self, at: int) -> None:
        self._is_stored[at] = True
        self._by_run.setdefault(self._runs[at], []).append(at)
        self._first.setdefault(self._keys[at], at)

    def longest(self, at: int) -> tuple[int, int]:
        """The number of units from `at` on that repeat stored units, at most, and the index of the first stored unit.
        The first of several equal matches wins."""
        most = first = 0
        for each in self._by_run.get(self._runs[at], ()):
            if at + most < len(self._keys) and self._is_equal(each + most, at + most):
                count = 0
                while at + count < len(self._keys) and self._is_equal(each + count, at + count):
                    count += 1
                if count > most:
                    most, first = count, each
        if most < 2 and self._keys[at] in self._first:
            return 1, self._first[self._keys[at]]
        return most, first

    def _is_equal(self, stored: int, unit: int) -> bool:
        return self._is_stored[stored] and self._keys[stored] == self._keys[unit]


def _numbered_runs(keys: Sequence[int], length: int) -> list[int]:
    """A number for the run of units that begins at each unit; equal runs have equal numbers. A run has as many units as
    the largest power of two up to `length`."""
    runs, reach = list(keys), 1
    while 2 * reach <= length:
        numbers: dict[tuple[int, int], int] = {}
        ends = [*runs[reach:], *[-1] * min(reach, len(runs))]
        runs = [numbers.setdefault(pair, len(numbers)) for pair in zip(runs, ends, strict=True)]
        reach *= 2
    return runs


def keys_of_steps(plan: Plan, pe: PePlan) -> list[Hashable]:
    """The key of each step; equal steps have equal keys. Each computation of the core has its own key."""
    onward = iter(layers_onward(pe))
    return [
        (_key(plan, pe.pe, place, step), next(onward) if isinstance(step, Compute) else 0)
        for place, step in enumerate(pe.steps)
    ]


def layers_onward(pe: PePlan) -> list[int]:
    """The distance, in tiles, from each compute step to the next: 0 between pieces of one tile."""
    numbers = pe.tile_numbers
    return [after - before for before, after in pairwise(numbers)] + [1] * bool(numbers)


def layer_places(plan: Plan, pe: PePlan) -> list[int]:
    """The number of the place of each tile's output on a PE. Tiles of later micro-batches may share a place."""
    numbers: dict[Hashable, int] = {}
    keys = ((tile.op, _view_key(plan, pe.pe, tile.output)) for tile in pe.tiles)
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _key(plan: Plan, pe: int, place: int, step: Step) -> Hashable:
    match step:
        case Wait(flag, count):
            return "wait", flag, count
        case Join(engine):
            return "join", engine
        case Restore(buffers):
            return "restore", buffers
        case Send(number):
            message = plan.messages[number]
            landings = tuple((each.pe, each.flag, _view_key(plan, each.pe, each.view)) for each in message.landings)
            return message.tensor, message.source_pe, _view_key(plan, message.source_pe, message.source), landings
        case Compute(engine=engine):
            if engine == CORE:
                return place
            views = tuple(_view_key(plan, pe, view) for view in (step.output, *step.inputs))
            others = tuple(name and plan.by_pe[pe].buffer(name).offset for name in (step.scratch, step.constants))
            return step.op, engine, step.submitted, step.streamed, views, others


def _view_key(plan: Plan, pe: int, view: View) -> Hashable:
    if pe == DRAM:
        return view
    buffer = plan.by_pe[pe].buffer(view.buffer)
    return view.box, buffer.offset, buffer.box, buffer.bytes, buffer.arrangement
