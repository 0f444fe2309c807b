"""A batch of frames as a value: to compare, change, schedule and emit."""

from __future__ import annotations

from dataclasses import dataclass, field

from npukit.plan.batch.channel_bands import Bands
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.emit.messages import UsualFlags
from npukit.plan.ir.assignment import Assignment, pes_of

LONGER = 0.01
"""Weight of a batch's length, an exponent of its frames: a batch of twice the frames must shorten the interval by
0.7 %, because each frame waits for its batch. With 0 the digits on 4 PEs are in batches of 96 frames instead of 24 for
an interval that is 0.5 % shorter (`benchmarks/golden_metrics.py`)."""


def weighed(interval: float, frames: int) -> float:
    """The cycles between frames, weighed by the number of frames of the batch."""
    return interval * frames**LONGER


@dataclass(frozen=True)
class Batch:
    """Several frames planned together.

    An assignment splits each op over the PEs of a group. Groups replicate the assignment on different frames.
    """

    groups: tuple[Assignment, ...]
    interleaved: int = 1
    """Frames that a group computes op by op: a frame while the tiles of another are in flight."""
    micro_batches: int = 1
    """Rounds of a group. During a micro-batch, the group fetches the inputs of the next."""
    stream: StreamWeights = field(default_factory=StreamWeights)
    bands: Bands = field(default_factory=dict)
    """The number of bands of each op that alternates with the next op."""
    prefetchers: tuple[int, ...] = ()
    """PEs of no group, for prefetching streamed constants. If empty, computing PEs prefetch."""
    low_memory: bool = False
    """True if memory is short. PEs then signal room for incoming tensors only after computing."""
    in_pages: bool = False
    """True if PEs short of memory fetch orders from DRAM, a page at a time. Their programs are tables; with
    `low_memory` short programs become tables too."""
    fetched: bool = True
    """True if inputs lie in DRAM and each PE fetches a part. False: inputs lie on the root."""
    patient: bool = True
    """True if PEs compute on while the messages of a resident frame leave. The sources then take memory longer."""

    flags: UsualFlags = field(default_factory=dict)
    """The flags settled on by later micro-batches of another emission, for the first micro-batch."""

    @property
    def frames(self) -> int:
        return self.micro_batches * self.frames_of_micro_batch

    @property
    def frames_of_micro_batch(self) -> int:
        return len(self.groups) * self.interleaved

    @property
    def pes(self) -> int:
        """The number of PEs that compute or prefetch."""
        return len({*pes_of(*self.groups), *self.prefetchers})

    @property
    def is_frame(self) -> bool:
        """True for a single frame with inputs on the root and all constants in the PEs."""
        return self.frames == 1 and not (self.fetched or self.stream.ops or self.bands or self.prefetchers)


def frame(assignment: Assignment, *, patient: bool = True) -> Batch:
    """A single frame with inputs on the root and all constants in the PEs."""
    return Batch((assignment,), fetched=False, patient=patient)
