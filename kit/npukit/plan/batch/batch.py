"""A batch of frames before it is emitted: a value to compare, change and emit (`batch_emitter.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from npukit.plan.batch.channel_bands import Bands
from npukit.plan.batch.weight_tiles import WEIGHT_TILE_BYTES, WEIGHT_TILES_IN_MEMORY
from npukit.plan.ir.assignment import Assignment


@dataclass(frozen=True)
class Batch:
    """A batch: groups of PEs with the same assignment each on its own, and the way they take their frames.

    Small weight tiles leave more memory for all else; large ones are less often interrupted.
    """

    groups: tuple[Assignment, ...]
    interleaved: int = 1
    micro_batches: int = 1
    streamed: frozenset[str] = frozenset()
    weight_tile_bytes: int = WEIGHT_TILE_BYTES
    weight_tiles: int = WEIGHT_TILES_IN_MEMORY
    """Weight tiles that have room in a PE together: one in use, others there or arriving."""
    room: int | None = None
    """Bytes that tensors and weight tiles may take together, or what they take of the most crowded PE if that is more:
    where tensors leave more of them, weight tiles are larger. Nothing given, none are."""
    prefetch_distance: int = 1
    """The number of ops before they are computed with that weight tiles may arrive."""
    low_memory: bool = False
    """Memory is short: PEs say only once they have computed that they have room for what others send."""
    fetched: bool = True
    """Inputs lie in DRAM, whence each PE fetches its part; else on the root."""
    prefetchers: tuple[int, ...] = ()
    """PEs of no group, which ask for what is streamed; without any, PEs that compute do."""
    bands: Bands = field(default_factory=dict)
    """Ops that take turns with those behind them."""

    @property
    def frames(self) -> int:
        return self.micro_batches * self.frames_of_micro_batch

    @property
    def frames_of_micro_batch(self) -> int:
        return len(self.groups) * self.interleaved

    @property
    def fills(self) -> bool:
        """Weight tiles are as large as there is room for, and there is room."""
        return self.room is not None and not self.low_memory
