"""One PE's program while it is emitted: steps, and the steps in which each part of its memory is in use."""

from __future__ import annotations

from dataclasses import dataclass, field

from npukit.accel.interface import Cost
from npukit.net.box import Box
from npukit.plan.causality import Known
from npukit.plan.plan import Step
from npukit.plan.regions import Region


@dataclass(frozen=True)
class Block:
    """Bytes that are no tensor: streamed constants, or what a signal carries."""

    name: str
    bytes: int

    @property
    def box(self) -> Box:
        return Box.whole((self.bytes,))


Held = Region | Block
"""What has bytes in a PE's memory."""


@dataclass
class Use:
    """The steps of its PE in which something is held."""

    first: int
    last: int

    def include(self, step: int) -> None:
        self.first, self.last = min(self.first, step), max(self.last, step)


@dataclass
class Program:
    """One PE's program as it grows."""

    pe: int
    steps: list[Step] = field(default_factory=list)
    costs: list[tuple[int, Cost]] = field(default_factory=list)
    """Of each compute step."""
    constants: dict[tuple[str, Box], int] = field(default_factory=dict)
    """Bytes in the image, by op and box: frames share them."""
    command_bytes: int = 0
    descriptor_bytes: int = 0
    uses: dict[Held, Use] = field(default_factory=dict)
    sending: list[Held] = field(default_factory=list)
    """Sources of the messages sent since the PE last waited for its own messages."""
    flags: dict[Held, int] = field(default_factory=dict)
    flag_free_from: dict[int, int] = field(default_factory=dict)
    """By flag, the first step at which nothing it counts is still to be waited for."""
    expected: dict[Held, list[Known]] = field(default_factory=dict)
    """By what they land in, what the senders of messages on their way knew."""

    def use(self, held: Held, step: int) -> None:
        self.uses.setdefault(held, Use(step, step)).include(step)
