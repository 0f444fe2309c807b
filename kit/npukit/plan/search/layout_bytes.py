"""The bytes of tensors in a PE's memory while an op is computed in a split, from inputs in the layouts they have."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import numpy as np

from npukit.plan.emit.regions import SMALL_PART
from npukit.plan.search.splits import Splits
from npukit.plan.tensors.boxes import Split, hull, volumes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.in_place import Aliases

Layout = tuple[tuple[str, Split], ...]
"""The live tensors and how each is spread."""


class Occupied:
    """Occupied memory of one net in the splits of one search."""

    def __init__(self, graph: Graph, splits: Splits, fetched: Collection[str], aliases: Aliases) -> None:
        """Tensors that are `fetched` are no PE's tiles. Tiles alias operands in the same layout."""
        self._graph, self._splits, self._fetched, self._aliases = graph, splits, fetched, aliases
        self._own = lru_cache(maxsize=None)(self._own_bytes)
        self._beside = lru_cache(maxsize=None)(self._bytes_beside)

    def bytes(self, index: int, layout: Layout, split: Split) -> int:
        """Bytes of the PE that holds most: its tiles, parts of others' tiles, what it makes, and weight tiles."""
        spread, op = dict(layout), self._graph.ops[index]
        held = self._own(op.output, split).copy()
        lain_on = next((name for name in self._aliases[op.name] if spread[name] == split), None)
        for name, each in layout:
            held += self._own(name, each) * (name != lain_on)
        for place, (name, _) in enumerate(self._splits.needs(index, split)):
            held += self._beside(name, spread[name], index, split, place)
        return int(held.max()) + self._splits.weight_tile_bytes(index, split)

    def _own_bytes(self, name: str, split: Split) -> np.ndarray:
        tiles = self._splits.tiles(name, split)
        return self._by_pe(volumes(tiles) * (name not in self._fetched), name, split)

    def _bytes_beside(self, name: str, spread: Split, index: int, split: Split, place: int) -> np.ndarray:
        """The bytes of a PE's region, or regions, of a tensor beyond its own tile, so that they hold what it needs."""
        _, needed = self._splits.needs(index, split)[place]
        owned = self._splits.tiles(name, spread)[: 0 if name in self._fetched else None]
        apart = volumes(needed)
        both = min(len(owned), len(needed))
        own = volumes(owned[:both])
        together = volumes(hull(owned[:both], needed[:both])) - own
        beside = apart.copy()
        merged = (together <= apart[:both]) & (together + own <= SMALL_PART * own)
        beside[:both] = np.where(merged, together, apart[:both])
        return self._by_pe(beside, name, split)

    def _by_pe(self, elements: np.ndarray, name: str, split: Split) -> np.ndarray:
        found = np.zeros(self._splits.pes)
        found[: len(elements)] = elements * self._splits.element_bytes(name, split)
        return found
