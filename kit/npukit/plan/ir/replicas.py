"""Data-parallel replicas in a plan: groups of PEs that repeat the steps of the first group, on their own frames.

Addresses are equal. Names of frames, numbers of messages and PEs of the group differ. The other groups' copies of a
message directly follow the first group's message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from npukit.plan.ir.names import later
from npukit.plan.ir.plan import Compute, Landing, Message, PePlan, Plan, Send, Step, View


@dataclass(frozen=True)
class Replica:
    """Group number `number`. `places`: its PEs by the corresponding PEs of the first group."""

    number: int
    places: Mapping[int, int]

    def pe(self, pe: PePlan) -> PePlan:
        """The PE of this group that corresponds to a PE of the first group."""
        tensors = {buffer.name: buffer.tensor for buffer in pe.buffers}
        steps = tuple(self._step(step, tensors) for step in pe.steps)
        buffers = tuple(replace(each, name=later(each.name, self.number, each.tensor)) for each in pe.buffers)
        return replace(pe, pe=self.places[pe.pe], steps=steps, buffers=buffers)

    def message(self, message: Message) -> Message:
        """The message of this group that corresponds to a message of the first group."""
        landings = tuple(self.landing(landing, message) for landing in message.landings)
        source_pe = self.places.get(message.source_pe, message.source_pe)
        return Message(message.tensor, source_pe, self._view(message.source, message.tensor), landings)

    def landing(self, landing: Landing, message: Message) -> Landing:
        """The landing of this group's message.

        Buffers are renamed for the group. All groups share the buffer of a signal or of constants on a PE outside the
        groups.
        """
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

    def _view(self, view: View, tensor: str) -> View:
        return View(later(view.buffer, self.number, tensor), view.box)


def replicas_in(groups: Sequence[Sequence[int]]) -> list[Replica]:
    """The groups after the first."""
    return [Replica(number, dict(zip(groups[0], group, strict=True))) for number, group in enumerate(groups) if number]


def with_replicas(plan: Plan, places: Sequence[Mapping[int, int]]) -> Plan:
    """The plan extended from the first group to all groups. PEs outside the groups stay single.

    `places`: for each group, its PEs by the corresponding PEs of the first group.
    """
    if len(places) < 2:
        return plan
    groups = tuple(tuple(place.values()) for place in places)
    replicas, members = replicas_in(groups), set(groups[0])
    numbers, messages = _of_all(plan, replicas, members)
    pes: list[PePlan] = []
    for pe in plan.pes:
        steps = tuple(Send(numbers[s.message]) if isinstance(s, Send) else s for s in pe.steps)
        pes.append(replace(pe, steps=steps))
        pes += [replica.pe(pes[-1]) for replica in replicas] if pe.pe in members else []
    root, *others = pes
    pes = [root, *sorted(others, key=lambda pe: pe.pe)]
    return replace(plan, pes=tuple(pes), messages=tuple(messages), alike=groups)


def _of_all(plan: Plan, replicas: Sequence[Replica], members: set[int]) -> tuple[list[int], list[Message]]:
    """The new number of each message, and the messages of all groups."""
    senders = {step.message: pe.pe for pe in plan.pes for step in pe.steps if isinstance(step, Send)}
    numbers: list[int] = []
    messages: list[Message] = []
    for number, message in enumerate(plan.messages):
        numbers.append(len(messages))
        if senders[number] in members:
            messages += [message, *(replica.message(message) for replica in replicas)]
        else:  # a message from a PE outside the groups lands in all of them
            more = [r.landing(each, message) for r in replicas for each in message.landings if each.pe in r.places]
            messages.append(replace(message, landings=(*message.landings, *more)))
    return numbers, messages
