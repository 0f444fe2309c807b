"""Choices: the ways in which accelerators compute ops. Places in accelerator memories for data that ops keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from npukit.accel.interface import Accelerator, Choice, Engines, whole_cycles
from npukit.net.net import Net, Op

STEP = 16
"""Alignment in bytes of kept data."""

TunedChoice = Callable[[Net, Op], str | None]
"""A function that returns the tuned choice of an op by name, or None."""


def as_predicted(net: Net, op: Op) -> str | None:
    return None


def choices_of(net: Net, op: Op, engines: Engines) -> Sequence[Choice]:
    """The choices of an op's engine; empty if there is nothing to choose."""
    engine = engines.get(op.engine)
    return engine.choices(net, op) if engine else ()


def with_choices(net: Net, engines: Engines, chosen: TunedChoice = as_predicted) -> Net:
    """The net with a choice for each op: the tuned choice if there is one, else the choice with the fewest cycles.

    Kept data gets a place in the accelerator's memory while there is room: tuned choices first, then by cycles saved
    per byte.
    """
    ways = [_Ways(net, op, engines[op.engine], found) for op in net.ops if (found := choices_of(net, op, engines))]
    made = {each.op.name: each.as_free(chosen) for each in ways}
    rooms: dict[str, _Room] = {}
    for _, each, choice in sorted(_kept_choices(ways, made, chosen), key=lambda kept: -kept[0]):
        room = rooms.setdefault(each.op.engine, _Room(each.engine.abilities.memories))
        if not made[each.op.name].places and (places := room.taken(choice)):
            made[each.op.name] = each.as_chosen(choice, places)
    return net.with_ops(tuple(made.get(op.name, op) for op in net.ops))


@dataclass(frozen=True)
class _Ways:
    """The choices for one op."""

    net: Net
    op: Op
    engine: Accelerator
    choices: Sequence[Choice]

    def as_free(self, chosen: TunedChoice) -> Op:
        """The op with the best choice that keeps no data."""
        free = [each for each in self.choices if not each.keeps]
        named = [each for each in free if each.name == chosen(self.net, self.op)]
        return self.as_chosen(min(named or free, key=lambda each: self.cycles(self.as_chosen(each))))

    def as_chosen(self, choice: Choice, places: tuple[tuple[str, int], ...] = ()) -> Op:
        return replace(self.op, choice=choice.name, places=places)

    def cycles(self, op: Op) -> int:
        return whole_cycles(self.net, op, self.engine)


def _kept_choices(
    ways: Sequence[_Ways], made: dict[str, Op], chosen: TunedChoice
) -> Iterator[tuple[float, _Ways, Choice]]:
    """The tuned or cycle-saving choices that keep data, and their gain in cycles per byte (infinite if tuned)."""
    for each in ways:
        before, wanted = each.cycles(made[each.op.name]), chosen(each.net, each.op)
        if wanted is not None and wanted == made[each.op.name].choice:
            continue
        for choice in (choice for choice in each.choices if choice.keeps):
            saved = before - each.cycles(each.as_chosen(choice, tuple((name, 0) for name in choice.keeps)))
            if choice.name == wanted or saved > 0:
                yield float("inf") if choice.name == wanted else saved / sum(choice.keeps.values()), each, choice


@dataclass
class _Room:
    """The bytes of an accelerator's memories, allocated from the beginning."""

    sizes: Mapping[str, int]
    used: dict[str, int] = field(default_factory=dict)

    def taken(self, choice: Choice) -> tuple[tuple[str, int], ...]:
        """Allocate places for the data of a choice; empty if the data does not fit."""
        places = {name: -(-self.used.get(name, 0) // STEP) * STEP for name in choice.keeps}
        ends = {name: places[name] + size for name, size in choice.keeps.items()}
        if any(end > self.sizes[name] for name, end in ends.items()):
            return ()
        self.used |= ends
        return tuple(places.items())
