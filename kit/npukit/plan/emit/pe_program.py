"""The program of a PE during emission: its steps, and the steps during which each buffer is in use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.plan.emit.regions import Region
from npukit.plan.emit.vector_clocks import Known
from npukit.plan.ir.names import read_name
from npukit.plan.ir.plan import Compute, Step


@dataclass(frozen=True)
class Block:
    """Bytes outside any tensor: streamed constants, or a signal."""

    name: str
    bytes: int = 0
    """0 for a signal, a message sent for the flag only."""
    source: str | None = None
    """The buffer in DRAM with the streamed constants."""

    @property
    def box(self) -> Box:
        return Box.whole((self.bytes,))


Held = Region | Block
"""A region or block: bytes in a PE's memory."""


def use_of(held: Held, frames: int) -> tuple[object, ...]:
    """The key of a region or block, equal in every micro-batch of `frames` frames."""
    if isinstance(held, Block):
        name = read_name(held.name)
        return name.stem, name.number, name.frame % frames
    return held.tensor, held.number, held.frame % frames


@dataclass
class Running:
    """The latest steps of an asynchronous accelerator, with the regions and blocks read and written.

    The steps become `submitted` when another engine starts work meanwhile. Only submitted steps need a join.
    """

    steps: list[int] = field(default_factory=list)
    reads: set[Held] = field(default_factory=set)
    writes: set[Held] = field(default_factory=set)
    submitted: bool = False

    def hinders(self, reads: Collection[Held], writes: Collection[Held]) -> bool:
        """True if a step with these reads and writes must wait for the running steps."""
        return not self.writes.isdisjoint((*reads, *writes)) or not self.reads.isdisjoint(writes)


@dataclass
class Arriving:
    """A message in flight. `known`: the sender's clock at departure. `awaited`: the receiver's waiting step, or None so
    far."""

    known: Known
    awaited: int | None = None


Sent = tuple[Held, Sequence[tuple[int, Arriving]]]
"""The source of a message, in use until the sender knows the message to have left, and the message in flight to each
receiver; none to DRAM."""


@dataclass
class PeProgram:
    """The program of a PE under construction."""

    pe: int
    steps: list[Step] = field(default_factory=list)
    costs: list[tuple[int, Cost]] = field(default_factory=list)
    """The cost of each compute step."""
    constants: dict[Hashable, int] = field(default_factory=dict)
    """Bytes of constants in the image, by key (`same_constants`). Frames and equal ops share constants."""
    commands: dict[int, int] = field(default_factory=dict)
    """Bytes of commands by step, without pieces whose constants are streamed."""
    pieces: dict[int, tuple[int, str, tuple[int, ...]]] = field(default_factory=dict)
    """Pieces with streamed constants, by step: bytes of the command, op, shape."""
    descriptors: dict[int, int] = field(default_factory=dict)
    """Bytes of descriptors by step, without signals."""
    signals: dict[int, int] = field(default_factory=dict)
    """Number of receivers of each signal, by step."""
    signal_bytes: int = 0
    """Bytes of the signals' descriptors. A table program has none."""
    uses: dict[Held, list[int]] = field(default_factory=dict)
    """The first and last step during which each region or block is in use."""
    sending: list[Sent] = field(default_factory=list)
    """The messages that may not have left yet, in order."""
    arrived: int = 0
    """Number of earlier messages known to have arrived, since the PE last waited for outgoing messages."""
    flags: dict[Held, int] = field(default_factory=dict)
    expected: dict[Held, list[Arriving]] = field(default_factory=dict)
    """The messages in flight, by the receiving region or block."""
    aliases: dict[Held, Held] = field(default_factory=dict)
    """Operands at their last use, each with the result that may alias the operand."""
    kept: dict[Held, Held] = field(default_factory=dict)
    """The PE's parts of states, each with the frame's new value at the same address."""
    running: dict[str, Running] = field(default_factory=dict)
    """Running steps by accelerator."""
    scratch_until: dict[int, int] = field(default_factory=dict)
    """The last step during which the scratch memory of each submitted step is in use."""

    def compute(self, index: int) -> Compute:
        """The compute step with this number."""
        step = self.steps[index]
        assert isinstance(step, Compute)
        return step

    def computes(self) -> Iterator[tuple[int, Compute, Cost]]:
        """The number, step and cost of each compute step."""
        return ((index, self.compute(index), cost) for index, cost in self.costs)

    def submit(self, running: Running) -> None:
        """Let the next step start while these steps run."""
        running.submitted = True
        for index in running.steps:
            self.steps[index] = replace(self.compute(index), submitted=True)

    def hold(self, constants: Hashable, size: int) -> None:
        """Reserve `size` bytes for constants, unless reserved already."""
        self.constants[constants] = max(self.constants.get(constants, 0), size)

    def use(self, held: Held, step: int) -> None:
        """Reserve a region or block at a step, and from its other uses on until then."""
        use = self.uses.setdefault(held, [step, step])
        use[:] = min(use[0], step), max(use[1], step)
