"""Replica groups: groups of PEs with the same program for different frames. A single group is emitted, the others are
copies.

Groups exchange no messages with each other. All groups exchange the same messages with PEs of no group: the root and
the prefetching PEs. A PE of no group waits for all groups, and signals to all at once. Knowledge of one group's
progress therefore holds for every group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npukit.plan.emit.pe_program import Block, Held, PeProgram
from npukit.plan.ir.assignment import Assignment, pes_of


@dataclass(frozen=True)
class Replicas:
    """The PEs of each group, by the corresponding PE of the first group. Frame f of the first group corresponds to
    frame f + g in group g.

    `first`: the number of the first group among all `groups`. A group with the root differs from all others, and is
    never a replica.
    """

    places: tuple[Mapping[int, int], ...] = ({},)
    first: int = 0
    groups: int = 1

    @property
    def count(self) -> int:
        return len(self.places)

    @cached_property
    def members(self) -> frozenset[int]:
        """The PEs of the first group, if there are other groups."""
        return frozenset(self.places[0]) if self.count > 1 else frozenset()

    def is_copied(self, frame: int) -> bool:
        """True if a frame belongs to a group that is not emitted."""
        return self.first < frame % self.groups < self.first + self.count

    def times(self, one: int, other: int) -> int:
        """The number of PEs represented by `one` in exchanges with `other`."""
        return self.count if one in self.members and other not in self.members else 1

    @property
    def more_pes(self) -> int:
        """The number of PEs in groups that are not emitted."""
        return (self.count - 1) * len(self.members)


NO_REPLICAS = Replicas()


def replicas_of(
    groups: Sequence[Assignment], prefetchers: Sequence[int], root: int, cpus: Mapping[int, str]
) -> Replicas:
    """The replicas among the groups without the root. `NO_REPLICAS` if the groups differ or contain prefetching PEs.

    `cpus`: the core of each PE, if the cores differ.
    """
    first = int(root in pes_of(groups[0]))
    if len(groups) < first + 2:
        return NO_REPLICAS
    places = tuple(_place(groups[first], group) for group in groups[first:])
    members = [pe for place in places for pe in place.values()]
    apart = {root, *prefetchers, *(pes_of(groups[0]) if first else ())}
    distinct = all(places) and len(set(members)) == len(members) and apart.isdisjoint(members)
    same = all(cpus.get(one) == cpus.get(other) for place in places for one, other in place.items())
    return Replicas(places, first, len(groups)) if distinct and same else NO_REPLICAS


def _place(first: Assignment, other: Assignment) -> dict[int, int]:
    """The PE of `other` for each PE of `first`; empty if the groups differ."""
    pairs = [pair for op, tiles in first.items() for pair in zip(tiles, other.get(op, ()), strict=False)]
    place = {one.pe: two.pe for one, two in pairs}
    moved = {op: tuple(replace(tile, pe=place.get(tile.pe, tile.pe)) for tile in first[op]) for op in first}
    return place if moved == other else {}


def with_uses_of_all(program: PeProgram, replicas: Replicas) -> PeProgram:
    """The program of a PE of no group, extended by the buffers of all groups' frames."""
    if replicas.count == 1 or program.pe in replicas.members:
        return program
    uses: dict[Held, list[int]] = {}
    for held, use in program.uses.items():
        if isinstance(held, Block) or held.frame % replicas.groups != replicas.first:
            uses[held] = use
        else:
            uses |= {held.later(group): use for group in range(replicas.count)}
    return replace(program, uses=uses)
