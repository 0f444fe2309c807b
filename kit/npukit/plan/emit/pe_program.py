"""One PE's program while it is emitted: steps, and the steps in which each part of its memory is in use."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.plan.emit.regions import Region
from npukit.plan.emit.vector_clocks import Known
from npukit.plan.ir.names import read_name
from npukit.plan.ir.plan import Compute, Step


@dataclass(frozen=True)
class Block:
    """Bytes that are no tensor: streamed constants, or what a signal carries."""

    name: str
    bytes: int
    source: str | None = None
    """The buffer in DRAM that streamed constants come from."""

    @property
    def box(self) -> Box:
        return Box.whole((self.bytes,))


Held = Region | Block
"""Things that have bytes in a PE's memory."""


def use_of(held: Held, frames: int) -> tuple[object, ...]:
    """The key that things of the same use have in common in every micro-batch, each of `frames` frames."""
    if isinstance(held, Block):
        name = read_name(held.name)
        return name.stem, name.number, name.frame % frames
    return held.tensor, held.number, held.frame % frames


@dataclass
class Use:
    """The steps of its PE in which something is held."""

    first: int
    last: int

    def include(self, step: int) -> None:
        self.first, self.last = min(self.first, step), max(self.last, step)


@dataclass
class Running:
    """The last steps given to an accelerator that runs by itself, and what they read and write.

    Until something else goes on meanwhile, nothing waits for it: then they are `submitted`.
    """

    steps: list[int] = field(default_factory=list)
    reads: set[Held] = field(default_factory=set)
    writes: set[Held] = field(default_factory=set)
    submitted: bool = False

    def hinders(self, reads: Collection[Held], writes: Collection[Held]) -> bool:
        """True if a step with these reads and writes has to wait for it."""
        return not self.writes.isdisjoint((*reads, *writes)) or not self.reads.isdisjoint(writes)


@dataclass
class Arriving:
    """A message on its way: what its sender knew, and the step that waits for it, once there is one."""

    known: Known
    awaited: int | None = None


@dataclass
class Sent:
    """The source of a message, in use until its PE knows that it has left, and the message on its way to each
    receiver; to none if it goes to DRAM."""

    held: Held
    arriving: Sequence[tuple[int, Arriving]]

    def has_arrived(self, known: Known) -> bool:
        """True if it is known that every receiver has waited for it."""
        return bool(self.arriving) and all(
            each.awaited is not None and known.of(pe) > each.awaited for pe, each in self.arriving
        )


@dataclass
class PeProgram:
    """One PE's program as it grows."""

    pe: int
    steps: list[Step] = field(default_factory=list)
    costs: list[tuple[int, Cost]] = field(default_factory=list)
    """The cost of each compute step."""
    constants: dict[Hashable, int] = field(default_factory=dict)
    """Bytes in the image, by what their tiles have in common: frames share them, and so do ops that are alike."""
    commands: dict[int, int] = field(default_factory=dict)
    """Their bytes by step, but for pieces whose constants are streamed."""
    pieces: dict[int, tuple[int, str, tuple[int, ...]]] = field(default_factory=dict)
    """The pieces by step: the bytes of a command, op, shape."""
    descriptors: dict[int, int] = field(default_factory=dict)
    """Their bytes by step, but for those of signals."""
    signals: dict[int, int] = field(default_factory=dict)
    """PEs told something, by step."""
    signal_bytes: int = 0
    """Bytes of the signals' descriptors, which a program that is a table does not have."""
    uses: dict[Held, Use] = field(default_factory=dict)
    sending: list[Sent] = field(default_factory=list)
    """The messages that may not have left yet, in their order."""
    arrived: int = 0
    """Messages sent before those, since the PE last waited for its own: it knows that they have arrived."""
    flags: dict[Held, int] = field(default_factory=dict)
    expected: dict[Held, list[Arriving]] = field(default_factory=dict)
    """The messages on their way, by what they land in."""

    aliases: dict[Held, Held] = field(default_factory=dict)
    """Things read for the last time by a tile that may lie on them, and that tile."""

    kept: dict[Held, Held] = field(default_factory=dict)
    """The parts of states that the PE keeps, each with what the frame makes of it in the same place."""

    running: dict[str, Running] = field(default_factory=dict)
    """The running work by accelerator."""
    scratch_until: dict[int, int] = field(default_factory=dict)
    """The step up to which the scratch memory of each submitted step is in use."""

    def submit(self, running: Running) -> None:
        """Let the next step go on while this runs."""
        running.submitted = True
        for index in running.steps:
            step = self.steps[index]
            assert isinstance(step, Compute)
            self.steps[index] = replace(step, submitted=True)

    def hold(self, constants: Hashable, size: int) -> None:
        """Constants of so many bytes, unless they are there already."""
        self.constants[constants] = max(self.constants.get(constants, 0), size)

    def use(self, held: Held, step: int) -> None:
        self.uses.setdefault(held, Use(step, step)).include(step)
