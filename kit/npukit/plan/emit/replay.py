"""Repeated stretches of a long program: runs of steps, equal down to the last address.

A table program stores each stretch once (`codegen/table.py`). Further micro-batches then take little memory.
"""

from __future__ import annotations

from collections import defaultdict
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
    """The division with repetitions of at least `shortest` units. Stored units are found by the run of units that
    begins with each: two units, or the largest power of two up to `shortest` if that is more."""
    runs, is_stored = _numbered_runs(keys, max(shortest, 2)), [False] * len(keys)
    by_run, first_of, at, begun = defaultdict[int, list[int]](list), dict[int, int](), 0, 0
    while at < len(keys):
        count, first = _longest(keys, is_stored, by_run[runs[at]], at)
        if count < 2 and keys[at] in first_of:
            count, first = 1, first_of[keys[at]]
        if count >= shortest and sum(rows[at : at + count]) > 1:
            if at > begun:
                yield Stretch(begun, at - begun, again=False)
            yield Stretch(first, count, again=True)
            at = begun = at + count
        else:
            is_stored[at] = True
            by_run[runs[at]].append(at)
            first_of.setdefault(keys[at], at)
            at += 1
    if at > begun:
        yield Stretch(begun, at - begun, again=False)


def _longest(keys: Sequence[int], is_stored: Sequence[bool], firsts: Sequence[int], at: int) -> tuple[int, int]:
    """The number of units from `at` on that repeat stored units from one of `firsts` on, at most, and the index of the
    first stored unit. The first of several equal matches wins."""
    most = first = 0
    for each in firsts:
        count = 0
        if at + most < len(keys) and is_stored[each + most] and keys[each + most] == keys[at + most]:
            while at + count < len(keys) and is_stored[each + count] and keys[each + count] == keys[at + count]:
                count += 1
        if count > most:
            most, first = count, each
    return most, first


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
