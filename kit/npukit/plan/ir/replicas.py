"""Data-parallel replicas in a plan: the PEs of other groups do what those of the first do, on frames of their own.

To the last address: names of frames, numbers of messages and PEs of the group differ. A message of the first group
has those of the other groups right behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from npukit.plan.ir.names import later
from npukit.plan.ir.plan import Buffer, Compute, Landing, Message, PePlan, Plan, Send, Step, View


@dataclass(frozen=True)
class Replica:
    """The group number `number`, which has its PEs in the `places` of those of the first."""

    number: int
    places: Mapping[int, int]

    def pe(self, pe: PePlan) -> PePlan:
        """The PE of this group that does what one of the first does."""
        tensors = {buffer.name: buffer.tensor for buffer in pe.buffers}
        steps = tuple(self._step(step, tensors) for step in pe.steps)
        buffers = tuple(self._buffer(buffer) for buffer in pe.buffers)
        return replace(pe, pe=self.places[pe.pe], steps=steps, buffers=buffers)

    def message(self, message: Message) -> Message:
        """The message of this group that is like one of the first group's."""
        landings = tuple(self.landing(landing, message) for landing in message.landings)
        source_pe = self.places.get(message.source_pe, message.source_pe)
        return Message(message.tensor, source_pe, self._view(message.source, message.tensor), landings)

    def landing(self, landing: Landing, message: Message) -> Landing:
        """The place where it lands: what is no tensor lands on PEs of no group where that of the first group does."""
        inside = landing.pe in self.places
        view = self._view(landing.view, message.tensor) if inside or message.tensor else landing.view
        return Landing(self.places.get(landing.pe, landing.pe), view, landing.flag)

    def _step(self, step: Step, tensors: Mapping[str, str]) -> Step:
        if isinstance(step, Send):
            return Send(step.message + self.number)
        if not isinstance(step, Compute):
            return step
        return replace(
            step,
            output=self._view(step.output, tensors[step.output.buffer]),
            inputs=tuple(self._view(view, tensors[view.buffer]) for view in step.inputs),
            scratch=step.scratch and later(step.scratch, self.number, ""),
            frame=step.frame + self.number,
        )

    def _buffer(self, buffer: Buffer) -> Buffer:
        return replace(buffer, name=later(buffer.name, self.number, buffer.tensor))

    def _view(self, view: View, tensor: str) -> View:
        return View(later(view.buffer, self.number, tensor), view.box)


def replicas_in(groups: Sequence[Sequence[int]]) -> list[Replica]:
    """The groups behind the first."""
    return [Replica(number, dict(zip(groups[0], group, strict=True))) for number, group in enumerate(groups) if number]


def with_replicas(plan: Plan, places: Sequence[Mapping[int, int]]) -> Plan:
    """The plan of the first group, and of PEs of no group, with the other groups.

    `places`: for each group its PEs by those of the first.
    """
    if len(places) < 2:
        return plan
    groups = tuple(tuple(place.values()) for place in places)
    replicas, members = replicas_in(groups), set(groups[0])
    numbers, messages = _of_all(plan, replicas, members)
    firsts = [_renumbered(pe, numbers) for pe in plan.pes]
    root, *others = (each for pe in firsts for each in _copies(pe, replicas if pe.pe in members else ()))
    pes = root, *sorted(others, key=lambda pe: pe.pe)
    return replace(plan, pes=pes, messages=tuple(messages), alike=groups)


def _of_all(plan: Plan, replicas: Sequence[Replica], members: set[int]) -> tuple[list[int], list[Message]]:
    """The number that each message has among those of all groups, and these."""
    senders = {step.message: pe.pe for pe in plan.pes for step in pe.steps if isinstance(step, Send)}
    numbers: list[int] = []
    messages: list[Message] = []
    for number, message in enumerate(plan.messages):
        numbers.append(len(messages))
        if senders[number] in members:
            messages += [message, *(replica.message(message) for replica in replicas)]
        else:
            messages.append(_to_all(message, replicas))
    return numbers, messages


def _to_all(message: Message, replicas: Sequence[Replica]) -> Message:
    """The message from a PE of no group, to those of all."""
    more = [r.landing(each, message) for r in replicas for each in message.landings if each.pe in r.places]
    return replace(message, landings=(*message.landings, *more))


def _renumbered(pe: PePlan, numbers: Sequence[int]) -> PePlan:
    return replace(pe, steps=tuple(Send(numbers[s.message]) if isinstance(s, Send) else s for s in pe.steps))


def _copies(pe: PePlan, replicas: Sequence[Replica]) -> Iterator[PePlan]:
    yield pe
    yield from (replica.pe(pe) for replica in replicas)
