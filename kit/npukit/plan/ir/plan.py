"""Plan: which PE computes what in which order, where every buffer lies, what moves where.

For a code generator. Each PE runs its `steps` in order, once a frame, for ever; the root (the board's first live
PE) starts a frame when the host asks, with the net's inputs in place, and ends it with the outputs in place: on the
root the buffer named like an input or output tensor holds it whole. A PE that is not the root starts its next frame
at once and stops at the first `Wait`.

A state lies in one buffer of each PE that makes a part of it, from frame to frame: what a frame makes of it is written
where the frame before left it, once nothing reads that any more.

Everything a step reads is in place when the step starts, and nothing is overwritten that is still to be read; the
waits in the plan are all that is needed for that. There is no flow control besides them: a message is sent only
when it follows from what its sender has waited for that the bytes it lands in are free (`vector_clocks.py` proves it
for each landing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from npukit.net.arrangement import Arrangement
from npukit.net.box import Box

SENT_FLAG = 0
"""The flag a message increments in the PE that sends it, once its source may be overwritten; not if that is DRAM."""

PAGES = "pages of orders"
"""The name of a PE's buffer for what comes from DRAM of its orders."""

NO_FLAG = 0xFF
"""The flag of a landing in DRAM, which counts none."""


@dataclass(frozen=True)
class Buffer:
    """Bytes of one PE's arena that hold a box of a tensor from step `first` to step `last` (both included).

    Densely, unless `arrangement` says otherwise. There may be more bytes than that takes.
    `tensor` is empty for scratch memory of an engine. `offset` counts from the start of the PE's activations.
    Buffers may share bytes on purpose: a reshape lies on its input.
    """

    name: str
    tensor: str
    box: Box
    bytes: int
    offset: int
    first: int
    last: int
    arrangement: Arrangement | None = None


@dataclass(frozen=True)
class View:
    """A box of a tensor, inside a buffer that holds at least that box.

    The buffer is dense over its own box: strides follow from that box, not from this one.
    """

    buffer: str
    box: Box


@dataclass(frozen=True)
class Compute:
    """Compute a box of an op's output. `inputs` are its activations, in the op's order.

    Each input's box is exactly what the output's box needs (`receptive.needs`): what of a window lies outside it is
    padding. `scratch` names the buffer of the engine's scratch memory, if it needs any. Computes that follow each
    other on one accelerator may run as one chain. If they are `submitted` they are only started, and a `Join` follows.
    `constants` names the buffer that its constants have been streamed to, all but its commands, `streamed` the one in
    DRAM that they come from; else they are in the image. `frame` is the frame of the batch that it works on. `cycles`
    are the engine's own; while it works messages
    take `stolen` more from it, as the plan was foreseen in time.
    """

    op: str
    engine: str
    output: View
    inputs: tuple[View, ...]
    cycles: int
    scratch: str | None = None
    constants: str | None = None
    streamed: str | None = None
    frame: int = 0
    submitted: bool = False
    stolen: int = 0

    @property
    def predicted_cycles(self) -> int:
        return self.cycles + self.stolen


@dataclass(frozen=True)
class Send:
    """Start message number `message` and go on. Sends that follow each other may be one chain of descriptors.

    The PE whose step it is does the work, wherever the message comes from.
    """

    message: int


@dataclass(frozen=True)
class Wait:
    """Go on when flag `flag` has counted `count` more than all earlier waits for it took (`noc_wait`)."""

    flag: int
    count: int


@dataclass(frozen=True)
class Join:
    """Go on when the accelerator has done all that was submitted to it."""

    engine: str


@dataclass(frozen=True)
class Restore:
    """Put their first values into the buffers of states: in the first frame, and in the next one after a reset."""

    buffers: tuple[str, ...]


Step = Compute | Join | Restore | Send | Wait


def streamed_name(op: str, box: Box, form: str | None) -> str:
    """The name of the buffer in DRAM that holds the constants of a box of an op's output, all but its commands.

    Boxes of the same channels share them if their constants have the same form; without one each has its own.
    """
    channels = f" {box.start[-1]}:{box.stop[-1]}" if box.start else ""
    return f"constants of {op}{channels}, {form or (box.start, box.stop)}"


def orders_name(pe: int) -> str:
    """The name of the buffer in DRAM that holds a PE's orders."""
    return f"orders of PE {pe}"


@dataclass(frozen=True)
class Landing:
    """The place where a message arrives, and the flag it increments there, once, when all of it is in place.

    With DRAM for a PE it is a buffer of `Plan.dram`.
    """

    pe: int
    view: View
    flag: int


@dataclass(frozen=True)
class Message:
    """A box of a tensor on its way from one PE to one or several, possibly to another buffer of the same PE.

    With `source_pe` DRAM it comes from a buffer of `Plan.dram`. Without a tensor it is streamed constants, or a signal,
    of which only the flag matters.

    `copies.copies` divides it into descriptors. All landings have the same strides and the same flag, so that each
    descriptor can be a multicast. The last descriptor carries the flags: `SENT_FLAG` of the sender and the
    landing's of each receiver.
    """

    tensor: str
    source_pe: int
    source: View
    landings: tuple[Landing, ...]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one PE's memories. Code and stack are reserves until the image is linked.

    `variables` is the part of the code that lies where the activations are, on boards whose code has a memory of its
    own: none until the image is linked. `banks` are bytes of activations in banks behind the first.
    """

    code: int
    constants: int
    activations: int
    stack: int
    free: int
    variables: int = 0
    banks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Page:
    """Orders that come from DRAM together: those of the PE's steps from `first` on, at most so many bytes."""

    first: int
    bytes: int


@dataclass(frozen=True)
class Orders:
    """Bytes of a PE's constants that are not the network's: commands, descriptors, and the table of its steps.

    Where memory is short they lie in DRAM, in `pages` of which two at a time are in its buffer `PAGES`.
    """

    commands: int = 0
    descriptors: int = 0
    table: int = 0
    pages: tuple[Page, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of those that are there all the time."""
        return self.commands + self.descriptors + self.table


def _together(first: Compute, second: Compute) -> Compute:
    """Two pieces of a tile as one."""
    box = first.output.box.hull(second.output.box)
    cycles, stolen = first.cycles + second.cycles, first.stolen + second.stolen
    return replace(first, output=replace(first.output, box=box), cycles=cycles, stolen=stolen)


@dataclass(frozen=True)
class PePlan:
    """One PE's program and memory. PEs with the same `role` run the same code on different data."""

    pe: int
    role: int
    steps: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    memory: MemoryUse
    orders: Orders = Orders()

    @cached_property
    def by_name(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.buffers}

    def buffer(self, name: str) -> Buffer:
        return self.by_name[name]

    @property
    def is_table(self) -> bool:
        """True if its program is a table of steps."""
        return self.orders.table > 0

    @property
    def bytes_in_pages(self) -> int:
        """The bytes in DRAM of its orders: each page has the room of the largest there."""
        return len(self.orders.pages) * self.buffer(PAGES).bytes // 2

    def computes(self) -> Iterator[Compute]:
        return (step for step in self.steps if isinstance(step, Compute))

    @cached_property
    def awaits_sent(self) -> bool:
        """True if it waits somewhere until what it sent has left; else nothing counts that."""
        return any(isinstance(step, Wait) and step.flag == SENT_FLAG for step in self.steps)

    @cached_property
    def tile_numbers(self) -> tuple[int, ...]:
        """The tile that each compute step belongs to: those computed piece by piece count once."""
        numbers: dict[object, int] = {}
        keys = ((step.op, step.frame, step.output.buffer) for step in self.computes())
        return tuple(numbers.setdefault(key, len(numbers)) for key in keys)

    @cached_property
    def tiles(self) -> tuple[Compute, ...]:
        """The tiles that the PE computes of each op and frame, as if in one step, in the order in which it begins."""
        found: dict[int, Compute] = {}
        for number, step in zip(self.tile_numbers, self.computes(), strict=True):
            found[number] = _together(found[number], step) if number in found else step
        return tuple(found.values())


@dataclass(frozen=True)
class Predicted:
    """Cycles of one frame alone, and between frames in steady state."""

    latency_cycles: int
    interval_cycles: int


@dataclass(frozen=True)
class Plan:
    """The whole network on the whole board. The first of `pes` is the root.

    A plan for throughput takes `frames` frames together, a batch, and each step belongs to one of them. Tensors of
    frame n > 0 are in buffers named `TENSOR of frame n`, the outputs on the root too. The inputs are then in `dram`,
    whose buffers are named likewise, large outputs as well, and so are the constants that are streamed, each piece
    once, in a buffer named `streamed_name`.

    All this on each of the `chips`, the root's first: the plan's PEs are those of the root's chip, and those that stand
    where they stand on the others do the same, each chip with frames and DRAM of its own (`plan/multi_chip.py`).
    """

    model: str
    board: str
    objective: str
    pes: tuple[PePlan, ...]
    messages: tuple[Message, ...] = field(default=())
    predicted: Predicted = Predicted(0, 0)
    frames: int = 1
    dram: tuple[Buffer, ...] = ()
    chips: tuple[int, ...] = (0,)
    alike: tuple[tuple[int, ...], ...] = ()
    """Groups of PEs of which the first of each does the same as the first of every other, and so on, to the last
    address: frames, the numbers of messages, and the PEs of the group that are named differ."""

    @cached_property
    def by_pe(self) -> dict[int, PePlan]:
        return {pe.pe: pe for pe in self.pes}

    @property
    def home(self) -> int:
        """The root's chip, or the first one of a plan that reaches over several."""
        return self.chips[0]

    @property
    def frames_of_all(self) -> int:
        """Frames that all chips take together."""
        return self.frames * len(self.chips)

    @property
    def pes_used(self) -> int:
        """The PEs in use on all chips."""
        return len(self.pes) * len(self.chips)

    @property
    def streams(self) -> bool:
        """True if constants lie in DRAM until they are needed."""
        return any(not buffer.tensor for buffer in self.dram)

    def headline(self) -> str:
        """The figures by which plans are compared, in one line."""
        cycles, batch = self.predicted, f", batches of {self.frames:,}" if self.frames > 1 else ""
        interval = f", {cycles.interval_cycles:,} between frames" if batch else ""
        pes = f"{self.pes_used} PE{'s' if self.pes_used > 1 else ''}"
        return f"{pes} for {self.objective}{batch}, {cycles.latency_cycles:,} cycles{interval}"

    def __str__(self) -> str:
        from npukit.plan.ir.text import print_plan

        return print_plan(self)
