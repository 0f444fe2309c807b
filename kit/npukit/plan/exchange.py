"""What it costs to bring a tensor from one layout to what another needs: an estimate for searches.

The same multicasts, descriptors and flits that `transfers.py` emits, without contention; `simulate.py` has the last
word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.board.board import Noc
from npukit.plan.boxes import Boxes, extents, meetings, volumes
from npukit.plan.cost import SEND_CYCLES, WAIT_CYCLES


@dataclass(frozen=True, eq=False)
class Distances:
    """Hops between the PEs of an order."""

    hops: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, columns: np.ndarray) -> Distances:
        return cls(abs(rows[:, None] - rows) + abs(columns[:, None] - columns))


def exchange_cycles(noc: Noc, distances: Distances, owned: Boxes, needed: Boxes, element_bytes: int) -> int:
    """Cycles from the last tile computed to the last need met; box i lies on PE i of the order."""
    pieces = meetings(owned, needed)
    moved = volumes(pieces) > 0
    common = range(min(moved.shape))
    moved[common, common] = False
    if not moved.any():
        return 0
    needs, sources = np.nonzero(moved)
    flits = _flits(pieces[needs, sources], owned[sources], needed[needs], element_bytes, noc.port_bytes_per_cycle)
    received = np.bincount(needs, flits).max()
    first = _first_of_each_multicast(pieces[needs, sources], sources)
    sending = np.bincount(sources[first], flits[first] + noc.setup_cycles).max()
    hops = int(distances.hops[needs, sources].max())
    return int(SEND_CYCLES + max(sending, received) + hops * noc.hop_cycles + WAIT_CYCLES)


def _first_of_each_multicast(pieces: Boxes, sources: np.ndarray) -> np.ndarray:
    """One index of each set of equal pieces of one source."""
    rows = np.concatenate([sources[:, None], pieces.reshape(len(pieces), -1)], axis=1)
    weights = np.cumprod(np.concatenate([[1], rows.max(0)[:-1] + 1]), dtype=np.int64)
    return np.unique(rows @ weights, return_index=True)[1]


def _flits(pieces: Boxes, owned: Boxes, needed: Boxes, element_bytes: int, flit_bytes: int) -> np.ndarray:
    """Of each piece, copied from a dense buffer of the owned box to one of the needed box."""
    sizes, sources, targets = extents(pieces), extents(owned), extents(needed)
    row = np.full(len(pieces), element_bytes, np.int64)
    dense = np.ones(len(pieces), bool)
    for axis in reversed(range(sizes.shape[1])):
        row = np.where(dense, row * sizes[:, axis], row)
        dense &= (sizes[:, axis] == sources[:, axis]) & (sizes[:, axis] == targets[:, axis])
    return sizes.prod(1) * element_bytes // row * -(-row // flit_bytes)
