"""Plan: the steps of each PE in order, the address of every buffer, every message.

The input of the code generator. Each PE runs its `steps` in order, once per frame, for ever. The root (the board's
first live PE) starts a frame at the host's request, with the net's inputs in place, and ends it with the outputs in
place. On the root, the buffer named like an input or output tensor holds the whole tensor. Any other PE starts its next
frame at once and stops at the first `Wait`.

A state lies in one buffer of each PE that computes a part of it, from frame to frame. A frame overwrites the previous
value with the new one, after the last read of the previous value.

Everything a step reads is in place when the step starts, and nothing is overwritten before its last read. The waits in
the plan suffice for both. There is no other flow control: a message is sent only when the sender's earlier waits imply
that the destination bytes are free (`vector_clocks.py` proves it for each landing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from npukit.accel.interface import Address, Operand
from npukit.board.noc import DRAM
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.net.tensor import Tensor
from npukit.plan.tensors.dma_copies import offset

SENT_FLAG = 0
"""Flag that a message increments in its sender, once its source may be overwritten. Not used if the source is DRAM."""

PAGES = "pages of orders"
"""Name of a PE's buffer for pages of orders from DRAM."""


@dataclass(frozen=True)
class Buffer:
    """Bytes of one PE's arena that hold a box of a tensor from step `first` to step `last` (both included).

    The layout is dense, unless `arrangement` states another. `bytes` may exceed the box. `tensor` is empty for an
    engine's scratch memory. `offset` counts from the start of the PE's activations. Buffers may alias on purpose: a
    reshape lies on its input.
    """

    name: str
    tensor: str
    box: Box
    bytes: int
    offset: int
    first: int
    last: int
    arrangement: Arrangement | None = None

    def operand(self, tensor: Tensor, box: Box, symbol: str) -> Operand:
        """A box of the tensor in this buffer, whose address is a symbol."""
        item, shape = np.dtype(tensor.dtype).itemsize, self.box.shape
        address, pixel = Address(symbol, offset(box, self.box, item)), (shape[-1] if shape else 1) * item
        row = pixel * (shape[2] if len(shape) == 4 else prod(shape[:-1]))
        return Operand(tensor, box, address, row, pixel, shape[1] * row if len(shape) == 4 else 0)


@dataclass(frozen=True)
class View:
    """A box of a tensor inside a buffer whose own box holds it.

    The buffer is dense over its own box: strides follow from the buffer's box.
    """

    buffer: str
    box: Box


@dataclass(frozen=True)
class Compute:
    """Compute a box of an op's output.

    `inputs`: the op's activations in its order. Each box is exactly the output box's need (`receptive.needs`); window
    positions outside the box are padding. `scratch`: the buffer of the engine's scratch memory, if needed. `submitted`:
    the engine is only started, and a `Join` follows. Consecutive computes on one accelerator may run as one chain.

    `constants`: the buffer for streamed constants, without commands; None if the constants are in the image.
    `streamed`: the source of streamed constants in DRAM. `frame`: the frame of the batch. `cycles`: the engine's own.
    `stolen`: predicted additional cycles, taken by messages meanwhile.
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
    """Start message number `message` and go on. Consecutive sends may be one chain of descriptors.

    The PE with this step does the work, even if another place is the message's source.
    """

    message: int


@dataclass(frozen=True)
class Wait:
    """Go on when flag `flag` has counted `count` more than all earlier waits on it together (`noc_wait`)."""

    flag: int
    count: int


@dataclass(frozen=True)
class Join:
    """Go on when the accelerator has completed all submitted work."""

    engine: str


@dataclass(frozen=True)
class Restore:
    """Write initial values into the buffers of states: in the first frame, and in the next frame after a reset."""

    buffers: tuple[str, ...]


Step = Compute | Join | Restore | Send | Wait


def streamed_name(op: str, box: Box, form: str | None) -> str:
    """The name of the DRAM buffer for the constants of a box of an op's output, without commands.

    Boxes of the same channels share a buffer if their constants have the same form. If `form` is None, each box has its
    own.
    """
    channels = f" {box.start[-1]}:{box.stop[-1]}" if box.start else ""
    return f"constants of {op}{channels}, {form or (box.start, box.stop)}"


def orders_name(pe: int) -> str:
    """The name of the DRAM buffer for a PE's orders."""
    return f"orders of PE {pe}"


@dataclass(frozen=True)
class Landing:
    """Destination of a message, and the flag incremented there, once, after all bytes are in place.

    If `pe` is DRAM, the view is of a buffer of `Plan.dram`.
    """

    pe: int
    view: View
    flag: int


@dataclass(frozen=True)
class Message:
    """Transfer of a box of a tensor from one PE to one or several, or to another buffer of the same PE.

    If `source_pe` is DRAM, the source is a buffer of `Plan.dram`. A message without a tensor carries streamed
    constants, or is a signal, which only increments a flag.

    `copies.copies` divides a message into descriptors. All landings have the same strides and the same flag, so that
    each descriptor can be a multicast. The last descriptor carries the flags: `SENT_FLAG` of the sender and the
    landing's flag of each receiver.
    """

    tensor: str
    source_pe: int
    source: View
    landings: tuple[Landing, ...]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes in one PE's memories. Code and stack are reserves until the image is linked.

    `variables`: the part of the code in the memory of the activations, on boards with a separate memory for code.
    `banks`: bytes of activations in each bank after the first.
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
    """A page of orders, fetched from DRAM at once: orders of the PE's steps from `first` on, at most `bytes` bytes."""

    first: int
    bytes: int


@dataclass(frozen=True)
class Orders:
    """Bytes of a PE's constants besides the network's: commands, descriptors, and the table of steps.

    If memory is short, orders lie in DRAM in `pages`, and the PE's buffer `PAGES` holds two pages at a time.
    """

    commands: int = 0
    descriptors: int = 0
    table: int = 0
    pages: tuple[Page, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of resident orders."""
        return self.commands + self.descriptors + self.table


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
        """True if the PE's program is a table of steps."""
        return self.orders.table > 0

    def with_stolen(self, stolen: Mapping[int, int]) -> PePlan:
        """The PE with these cycles taken by messages from compute steps, by step index. All others lose none."""
        steps = enumerate(self.steps)
        taken = (replace(s, stolen=stolen.get(i, 0)) if isinstance(s, Compute) else s for i, s in steps)
        return replace(self, steps=tuple(taken))

    @property
    def bytes_in_pages(self) -> int:
        """The bytes of the PE's pages in DRAM. Each page occupies as much as the largest."""
        return len(self.orders.pages) * self.buffer(PAGES).bytes // 2

    def computes(self) -> Iterator[Compute]:
        return (step for step in self.steps if isinstance(step, Compute))

    @cached_property
    def awaits_sent(self) -> bool:
        """True if the PE waits for departures of its messages. Otherwise departures are not counted."""
        return any(isinstance(step, Wait) and step.flag == SENT_FLAG for step in self.steps)

    @cached_property
    def tile_numbers(self) -> tuple[int, ...]:
        """The tile number of each compute step. Pieces of one tile have the same number."""
        numbers: dict[object, int] = {}
        keys = ((step.op, step.frame, step.output.buffer) for step in self.computes())
        return tuple(numbers.setdefault(key, len(numbers)) for key in keys)

    @cached_property
    def tiles(self) -> tuple[Compute, ...]:
        """The tiles that the PE computes, with pieces joined, in the order of their beginning."""
        found: dict[int, Compute] = {}
        for number, step in zip(self.tile_numbers, self.computes(), strict=True):
            if first := found.get(number):
                output = replace(first.output, box=first.output.box.hull(step.output.box))
                cycles, stolen = first.cycles + step.cycles, first.stolen + step.stolen
                found[number] = replace(first, output=output, cycles=cycles, stolen=stolen)
            else:
                found[number] = step
        return tuple(found.values())


@dataclass(frozen=True)
class Predicted:
    """Latency of one frame, and interval between frames in steady state, in cycles."""

    latency_cycles: int
    interval_cycles: int


@dataclass(frozen=True)
class Plan:
    """Plan of the whole network on the whole board. The first of `pes` is the root.

    A plan for throughput takes a batch of `frames` frames together. Each step belongs to one frame. Tensors of frame n
    > 0 are in buffers named `TENSOR of frame n`, the outputs on the root too. The inputs are then in `dram`, in buffers
    named likewise, as are large outputs. Streamed constants are there too, each piece once, in a buffer named
    `streamed_name`.

    Each of the `chips`, the root's first, does the same work. `pes` are PEs of the root's chip. The PEs in the same
    positions on the other chips have the same steps, and each chip has its own frames and its own DRAM
    (`plan/multi_chip.py`).
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
    """Groups of PEs with equal programs: the n-th PE of each group corresponds to the n-th of every other, down to the
    addresses. Only frames, message numbers and the named PEs of the group differ."""

    @cached_property
    def by_pe(self) -> dict[int, PePlan]:
        return {pe.pe: pe for pe in self.pes}

    def buffer(self, place: int, name: str) -> Buffer:
        """A buffer of a PE or of DRAM."""
        return self._in_dram[name] if place == DRAM else self.by_pe[place].buffer(name)

    @cached_property
    def _in_dram(self) -> dict[str, Buffer]:
        return {buffer.name: buffer for buffer in self.dram}

    @cached_property
    def landing_on(self) -> dict[int, dict[int, list[int]]]:
        """The numbers of the messages that land on each PE, by flag."""
        found: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, message in enumerate(self.messages):
            for landing in message.landings:
                found[landing.pe][landing.flag].append(number)
        return found

    @property
    def home(self) -> int:
        """The root's chip, or the first chip of a plan across several."""
        return self.chips[0]

    @property
    def frames_of_all(self) -> int:
        """Frames in a batch on all chips."""
        return self.frames * len(self.chips)

    @property
    def pes_used(self) -> int:
        """The PEs in use on all chips."""
        return len(self.pes) * len(self.chips)

    @property
    def streams(self) -> bool:
        """True if some constants are streamed from DRAM."""
        return any(not buffer.tensor for buffer in self.dram)

    def headline(self) -> str:
        """The figures for comparing plans, in one line."""
        cycles, batch = self.predicted, f", batches of {self.frames:,}" if self.frames > 1 else ""
        interval = f", {cycles.interval_cycles:,} between frames" if batch else ""
        pes = f"{self.pes_used} PE{'s' if self.pes_used > 1 else ''}"
        return f"{pes} for {self.objective}{batch}, {cycles.latency_cycles:,} cycles{interval}"

    def __str__(self) -> str:
        from npukit.plan.ir.text import print_plan

        return print_plan(self)
