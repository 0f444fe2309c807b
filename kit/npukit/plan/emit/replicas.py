"""Groups of PEs that do the same on frames of their own: one of them is emitted, and all follow from it.

Groups exchange nothing with each other. What they exchange with PEs of no group, the root and those that ask for
streamed constants, each group does as the others do: such a PE waits for all of them, and tells all of them at once.
So what is known of one group's progress holds of every group's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npukit.plan.emit.pe_program import Block, Held, Program, Use
from npukit.plan.emit.regions import Region, in_frame
from npukit.plan.ir.assignment import Assignment
from npukit.plan.ir.plan import Compute, Landing, Message, PePlan, Plan, Send, Step, View
from npukit.plan.tensors.graph import Graph


@dataclass(frozen=True)
class Replicas:
    """The PEs of each group that correspond to those of the first one. Its frame f is frame f + g in group g."""

    places: tuple[Mapping[int, int], ...] = ({},)

    @property
    def count(self) -> int:
        return len(self.places)

    @cached_property
    def members(self) -> frozenset[int]:
        """The PEs of the first group, if there are others."""
        return frozenset(self.places[0]) if self.count > 1 else frozenset()

    def times(self, one: int, other: int) -> int:
        """The number of PEs for which what a PE does with the other stands."""
        return self.count if one in self.members and other not in self.members else 1

    @property
    def more_pes(self) -> int:
        """PEs of the groups that are not emitted."""
        return (self.count - 1) * len(self.members)


NO_REPLICAS = Replicas()


def replicas_of(groups: Sequence[Assignment], outside: Sequence[int], root: int) -> Replicas:
    """The replicas among the groups; none if they differ, or if the root or prefetching PEs are in them."""
    places = tuple(_place(groups[0], group) for group in groups)
    apart = root in outside and len({pe for each in places for pe in each.values()}) == sum(map(len, places))
    same = all(place and set(place.values()).isdisjoint(outside) for place in places)
    return Replicas(places) if apart and same else NO_REPLICAS


def _place(first: Assignment, other: Assignment) -> dict[int, int]:
    """The PE of the other group that corresponds to each PE of one; none if they differ."""
    pairs = [pair for op, tiles in first.items() for pair in zip(tiles, other.get(op, ()), strict=False)]
    place = {one.pe: two.pe for one, two in pairs}
    moved = {op: tuple(replace(tile, pe=place.get(tile.pe, tile.pe)) for tile in first[op]) for op in first}
    return place if moved == other else {}


def with_uses_of_all(program: Program, alike: Replicas) -> Program:
    """The program of a PE of no group, with what it holds of the frames of all groups."""
    if alike.count == 1 or program.pe in alike.members:
        return program
    uses = {
        each: Use(use.first, use.last) for held, use in program.uses.items() for each in _of_all_groups(held, alike)
    }
    return replace(program, uses=uses)


def _of_all_groups(held: Held, alike: Replicas) -> Iterator[Held]:
    for group in range(alike.count if isinstance(held, Region) else 1):
        yield held.later(group)


def plan_of_all(graph: Graph, plan: Plan, programs: Sequence[Program], alike: Replicas) -> Plan:
    """The plan of the first group, and of PEs of no group, with the other groups."""
    return _Copies(graph, plan, programs, alike).plan() if alike.count > 1 else plan


class _Copies:
    """The plan of the first group, group by group."""

    def __init__(self, graph: Graph, plan: Plan, programs: Sequence[Program], alike: Replicas) -> None:
        self._plan, self._alike = plan, alike
        self._senders = {step.message: pe.pe for pe in plan.pes for step in pe.steps if isinstance(step, Send)}
        held = dict.fromkeys(each for program in programs for each in program.uses)
        scratch = {step.scratch: step for pe in plan.pes for step in pe.computes() if step.scratch}
        self._names: list[dict[str, str]] = []
        """The names that differ in each group."""
        for group in range(alike.count):
            names = {old: new for each in held for old, new in _renamed(graph, each, group)}
            names |= {old: in_frame(f"{step.op} scratch", step.frame + group) for old, step in scratch.items()}
            self._names.append(names)
        self._places, self._messages = self._of_all()

    def plan(self) -> Plan:
        root, *others = (each for pe in self._plan.pes for each in self._pes(pe))
        pes = root, *sorted(others, key=lambda pe: pe.pe)
        twins = tuple(tuple(place.values()) for place in self._alike.places)
        return replace(self._plan, pes=pes, messages=tuple(self._messages), alike=twins)

    def _of_all(self) -> tuple[list[int], list[Message]]:
        """The first of the messages that each message stands for; and the messages of all groups."""
        places: list[int] = []
        messages: list[Message] = []
        for number, message in enumerate(self._plan.messages):
            places.append(len(messages))
            inside = self._senders[number] in self._alike.members
            messages += self._by_group(message) if inside else [self._to_all(message)]
        return places, messages

    def _by_group(self, message: Message) -> Iterator[Message]:
        for group in range(self._alike.count):
            place = self._alike.places[group]
            landings = tuple(self._landing(landing, message, group) for landing in message.landings)
            source_pe = place.get(message.source_pe, message.source_pe)
            yield Message(message.tensor, source_pe, self._view(message.source, group), landings)

    def _to_all(self, message: Message) -> Message:
        """The message from a PE of no group, to those of all."""
        members, groups = self._alike.members, range(self._alike.count)
        landings = [(group, each) for group in groups for each in message.landings if not group or each.pe in members]
        return replace(message, landings=tuple(self._landing(each, message, group) for group, each in landings))

    def _landing(self, landing: Landing, message: Message, group: int) -> Landing:
        """The landing on a PE of no group, which all groups signal by one flag, unless they bring tensors."""
        inside = landing.pe in self._alike.members
        view = self._view(landing.view, group) if inside or message.tensor else landing.view
        return Landing(self._alike.places[group].get(landing.pe, landing.pe), view, landing.flag)

    def _view(self, view: View, group: int) -> View:
        name = self._names[group].get(view.buffer)
        return View(name, view.box) if name else view

    def _pes(self, pe: PePlan) -> Iterator[PePlan]:
        """A PE, and those of the other groups that do what it does."""
        inside = pe.pe in self._alike.members
        for group in range(self._alike.count if inside else 1):
            names, place = self._names[group], self._alike.places[group]
            steps = tuple(self._step(step, group, inside=inside) for step in pe.steps)
            buffers = pe.buffers
            if group:
                buffers = tuple(replace(each, name=names.get(each.name, each.name)) for each in pe.buffers)
            yield replace(pe, pe=place.get(pe.pe, pe.pe), steps=steps, buffers=buffers)

    def _step(self, step: Step, group: int, *, inside: bool) -> Step:
        if isinstance(step, Send):
            return Send(self._places[step.message] + (group if inside else 0))
        if not group or not isinstance(step, Compute):
            return step
        names = self._names[group]
        return replace(
            step,
            output=self._view(step.output, group),
            inputs=tuple(self._view(view, group) for view in step.inputs),
            scratch=step.scratch and names[step.scratch],
            frame=step.frame + group,
        )


def _renamed(graph: Graph, held: Held, group: int) -> Iterator[tuple[str, str]]:
    """The names that differ in another group: the name here, and there."""
    later = held.later(group)
    if isinstance(held, Region) and isinstance(later, Region):
        for name in (held.tensor, *graph.views(held.tensor)):
            yield held.named(name), later.named(name)
        if held.tensor in graph.net.inputs:
            yield in_frame(held.tensor, held.frame), in_frame(held.tensor, later.frame)  # in DRAM
    elif isinstance(held, Block) and isinstance(later, Block) and held.frame is not None:
        yield held.name, later.name
