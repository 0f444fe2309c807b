"""Repeated subsequences of a long program: steps that are alike to the last address, and stretches of them.

A program that is a table has each of them once (`codegen/table.py`), so that a micro-batch more takes little memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from npukit.board.noc import DRAM
from npukit.net.net import CORE
from npukit.plan.ir.plan import Compute, Join, Message, PePlan, Plan, Restore, Send, Step, View, Wait


@dataclass(frozen=True)
class Stretch:
    """Units of a program from number `first` on: written here, or to be done `again` as they are written there."""

    first: int
    count: int
    again: bool


SHORTEST = (1, 4, 16, 64)
"""Units that a stretch done again must have, tried: short ones here and there keep long ones from being written in one
piece."""


def stretches(likes: Sequence[Hashable], rows: Sequence[int]) -> list[Stretch]:
    """A program of units, each with what it must have in common with another to be the same, and its rows.

    What is done again is written in one piece, and takes one row instead of all of its own.
    """
    numbers: dict[Hashable, int] = {}
    numbered = [numbers.setdefault(like, len(numbers)) for like in likes]
    tried = [list(_stretches(numbered, rows, shortest)) for shortest in SHORTEST]
    return min(tried, key=lambda each: rows_of(each, rows))


def rows_of(found: Sequence[Stretch], rows: Sequence[int]) -> int:
    """The rows that a program in these stretches takes."""
    return sum(1 if part.again else sum(rows[part.first : part.first + part.count]) for part in found)


def _stretches(likes: Sequence[Hashable], rows: Sequence[int], shortest: int) -> Iterator[Stretch]:
    written: dict[Hashable, list[int]] = {}
    literal = [False] * len(likes)
    at = begun = 0
    while at < len(likes):
        count, first = _longest(likes, written.get(likes[at], ()), at, literal)
        if count >= shortest and sum(rows[at : at + count]) > 1:
            if at > begun:
                yield Stretch(begun, at - begun, again=False)
            yield Stretch(first, count, again=True)
            at = begun = at + count
        else:
            written.setdefault(likes[at], []).append(at)
            literal[at] = True
            at += 1
    if at > begun:
        yield Stretch(begun, at - begun, again=False)


def _longest(likes: Sequence[Hashable], firsts: Sequence[int], at: int, literal: Sequence[bool]) -> tuple[int, int]:
    """The most units that are those written from one of these on, and from which on."""
    most = first = 0
    for each in firsts:
        if at + most < len(likes) and literal[each + most] and likes[each + most] == likes[at + most]:
            count = _alike(likes, each, at, literal)
            if count > most:
                most, first = count, each
    return most, first


def _alike(likes: Sequence[Hashable], first: int, at: int, literal: Sequence[bool]) -> int:
    """The number of units from `at` on that are those written from `first` on."""
    count = 0
    while at + count < len(likes) and literal[first + count] and likes[first + count] == likes[at + count]:
        count += 1
    return count


def likes_of(plan: Plan, pe: PePlan) -> list[Hashable]:
    """The key that a step has in common with another to be the same: each computation of the core has its own."""
    onward = iter(layers_onward(pe))
    return [
        (_like(plan, pe.pe, place, step), next(onward) if isinstance(step, Compute) else 0)
        for place, step in enumerate(pe.steps)
    ]


def layers_onward(pe: PePlan) -> list[int]:
    """The distance from each compute step's tile to the next one's: 0 if they are pieces of one."""
    numbers = pe.tile_numbers
    return [after - before for before, after in pairwise(numbers)] + [1] * bool(numbers)


def layer_places(plan: Plan, pe: PePlan) -> list[int]:
    """The number of the place that each of a PE's tiles is left in; those of later micro-batches may
    have the same."""
    numbers: dict[Hashable, int] = {}
    likes = ((tile.op, _like_view(plan, pe.pe, tile.output)) for tile in pe.tiles)
    return [numbers.setdefault(like, len(numbers)) for like in likes]


def _like(plan: Plan, pe: int, place: int, step: Step) -> Hashable:
    match step:
        case Wait(flag, count):
            return "wait", flag, count
        case Join(engine):
            return "join", engine
        case Restore(buffers):
            return "restore", buffers
        case Send(number):
            return _like_message(plan, plan.messages[number])
        case Compute():
            return place if step.engine == CORE else _like_compute(plan, pe, step)


def _like_message(plan: Plan, message: Message) -> Hashable:
    landings = tuple((each.pe, each.flag, _like_view(plan, each.pe, each.view)) for each in message.landings)
    return message.tensor, message.source_pe, _like_view(plan, message.source_pe, message.source), landings


def _like_compute(plan: Plan, pe: int, step: Compute) -> Hashable:
    views = tuple(_like_view(plan, pe, view) for view in (step.output, *step.inputs))
    others = tuple(name and plan.by_pe[pe].buffer(name).offset for name in (step.scratch, step.constants))
    return step.op, step.engine, step.submitted, step.streamed, views, others


def _like_view(plan: Plan, pe: int, view: View) -> Hashable:
    if pe == DRAM:
        return view
    buffer = plan.by_pe[pe].buffer(view.buffer)
    return view.box, buffer.offset, buffer.box, buffer.bytes, buffer.arrangement
