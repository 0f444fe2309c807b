"""A batch of frames before it is emitted: a value to compare, change and emit (`batch_emitter.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from npukit.plan.batch.channel_bands import Bands
from npukit.plan.batch.weight_tiles import WeightTiling
from npukit.plan.ir.assignment import Assignment


@dataclass(frozen=True)
class Batch:
    """A batch: groups of PEs with the same assignment each on its own, and the way they take their frames."""

    groups: tuple[Assignment, ...]
    interleaved: int = 1
    micro_batches: int = 1
    streamed: frozenset[str] = frozenset()
    """Ops whose constants are streamed, in weight tiles as the `tiling` has them."""
    tiling: WeightTiling = field(default_factory=WeightTiling)
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
        return self.tiling.room is not None and not self.low_memory
