"""A batch of frames: strategies that compose, each a value; to compare, change, schedule and emit."""

from __future__ import annotations

from dataclasses import dataclass, field

from npukit.plan.batch.channel_bands import Bands
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.assignment import Assignment


@dataclass(frozen=True)
class Pipeline:
    """A strategy: what a group computes hides what it waits for.

    Of `interleaved` frames, taken op by op, one is computed while tiles of another are on their way. While a
    micro-batch is computed, the inputs of the next are fetched.
    """

    interleaved: int = 1
    micro_batches: int = 1


@dataclass(frozen=True)
class Batch:
    """Several frames at once.

    An assignment splits each op over the PEs of a group; groups replicate it, each with frames of its own. They take
    these in a `pipeline`, `stream` the constants that have no room, and fuse pairs of ops depth-first in `bands`.
    """

    groups: tuple[Assignment, ...]
    pipeline: Pipeline = field(default_factory=Pipeline)
    stream: StreamWeights = field(default_factory=StreamWeights)
    bands: Bands = field(default_factory=dict)
    """Ops that take turns with those behind them."""
    prefetchers: tuple[int, ...] = ()
    """PEs of no group, which ask for what is streamed; without any, PEs that compute do."""
    low_memory: bool = False
    """Memory is short: PEs say only once they have computed that they have room for what others send."""
    in_pages: bool = False
    """PEs that lack memory fetch their orders from DRAM, a page at a time: those whose programs are tables, which with
    `low_memory` short ones are too."""
    fetched: bool = True
    """Inputs lie in DRAM, whence each PE fetches its part; else on the root."""

    @property
    def frames(self) -> int:
        return self.pipeline.micro_batches * self.frames_of_micro_batch

    @property
    def frames_of_micro_batch(self) -> int:
        return len(self.groups) * self.pipeline.interleaved

    @property
    def fills(self) -> bool:
        """Weight tiles are as large as there is room for, and there is room."""
        return self.stream.room is not None and not self.low_memory
