"""Plan: which PE computes what in which order, where every buffer lies, what moves where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from npukit.net.box import Box


@dataclass(frozen=True)
class Buffer:
    """Bytes of one PE's arena that hold a box of a tensor, densely, from step `first` to step `last` (both included).

    `tensor` is empty for scratch memory of an engine. `offset` counts from the start of the PE's activations.
    With `slots` > 1 there are as many copies of `bytes`, used by frames in turn.
    Buffers may share bytes on purpose: a reshape lies on its input.
    """

    name: str
    tensor: str
    box: Box
    bytes: int
    offset: int
    first: int
    last: int
    slots: int = 1


@dataclass(frozen=True)
class View:
    """A box of a tensor, inside a buffer that holds at least that box."""

    buffer: str
    box: Box


@dataclass(frozen=True)
class Compute:
    """Compute a box of an op's output. `inputs` are its activations, in the op's order.

    `scratch` names the buffer of the engine's scratch memory, if it needs any.
    """

    op: str
    engine: str
    output: View
    inputs: tuple[View, ...]
    cycles: int
    scratch: str | None = None


@dataclass(frozen=True)
class Send:
    """Start message number `message`."""

    message: int


@dataclass(frozen=True)
class Wait:
    """Go on when flag `flag` has been incremented `count` times in this frame."""

    flag: int
    count: int


Step = Compute | Send | Wait


@dataclass(frozen=True)
class Landing:
    """Where a message arrives, and the flag it increments there."""

    pe: int
    view: View
    flag: int


@dataclass(frozen=True)
class Message:
    """A box of a tensor on its way from one PE to one or several."""

    tensor: str
    source_pe: int
    source: View
    landings: tuple[Landing, ...]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one PE's memories. `code` is known once the image is linked, 0 before."""

    code: int
    constants: int
    activations: int
    stack: int
    free: int


@dataclass(frozen=True)
class PePlan:
    """One PE's program and memory. PEs with the same `role` run the same code."""

    pe: int
    role: int
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    memory: MemoryUse

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)

    def computes(self) -> Iterator[Compute]:
        return (step for step in self.steps if isinstance(step, Compute))


@dataclass(frozen=True)
class Predicted:
    latency_cycles: int
    interval_cycles: int


@dataclass(frozen=True)
class Plan:
    """The whole network on the whole board."""

    model: str
    board: str
    objective: str
    pes: tuple[PePlan, ...]
    messages: tuple[Message, ...] = field(default=())
    predicted: Predicted = Predicted(0, 0)

    def __str__(self) -> str:
        from npukit.plan.text import print_plan

        return print_plan(self)
