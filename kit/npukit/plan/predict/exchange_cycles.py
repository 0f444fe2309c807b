"""The cost of converting a tensor from one layout to another: an estimate for searches.

Counts the multicasts, descriptors and flits of `emit/`, without contention. `simulate.py` gives the final prediction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.board.board import Board, Noc
from npukit.plan.tensors.boxes import Boxes, common, extents, hull, meet, volumes
from npukit.plan.tensors.core_cycles import DOORBELL_CYCLES, DOZE_CYCLES, SEND_CYCLES, WAKE_CYCLES


def fetch_cycles(noc: Noc, whole: Sequence[int], needed: Boxes, element_bytes: int) -> int:
    """Cycles of DRAM to deliver each PE's part of a tensor, or to receive the parts. Equal parts count once."""
    needed = np.unique(needed, axis=0)
    held = np.broadcast_to(np.array([(0, size) for size in whole], np.int64), needed.shape)
    _, flits = copies_of_many(needed, held, needed, element_bytes, noc.port_bytes_per_cycle)
    given = int(flits.sum()) * noc.port_bytes_per_cycle // noc.dram_bytes_per_cycle
    return SEND_CYCLES + WAKE_CYCLES + noc.dram_latency_cycles + given


def hops_on(board: Board, order: Sequence[int]) -> np.ndarray:
    """[n, n]: hops between the PEs of an order, counted as if all chips formed one grid."""
    pes, chips = board.mesh.pes, board.mesh.chips
    chip, place = np.divmod(np.array(order), pes.count)
    rows = chip // chips.columns * pes.rows + place // pes.columns
    columns = chip % chips.columns * pes.columns + place % pes.columns
    return abs(rows[:, None] - rows) + abs(columns[:, None] - columns)


def exchange_cycles(noc: Noc, hops: np.ndarray, owned: Boxes, needed: Boxes, element_bytes: int) -> int:
    """Cycles from the end of the last tile to the arrival of the last need. Box i lies on PE i of the order."""
    moved = meet(owned, needed)
    places = np.arange(min(moved.shape))
    around = volumes(hull(owned[places], needed[places]))  # tile and needs share a region if none is wasted
    shared = places[around <= volumes(owned[places]) + volumes(needed[places])]
    moved[shared, shared] = False
    if not moved.any():
        return 0
    held_sources, held_needs = owned.copy(), needed.copy()
    held_sources[shared] = held_needs[shared] = hull(owned[shared], needed[shared])
    needs, sources = np.nonzero(moved)
    boxes, targets = common(owned[sources], needed[needs]), held_needs[needs]
    descriptors, flits = copies_of_many(boxes, held_sources[sources], targets, element_bytes, noc.port_bytes_per_cycle)
    local = needs == sources  # a local copy reads and writes the same memory
    first, pes = _first_of_each_multicast(boxes, sources, targets, local), max(len(owned), len(needed))
    packets = flits + descriptors  # a short message has a flit beside its data, the header
    received = np.bincount(needs, packets, minlength=pes)
    taken = packets + descriptors * noc.setup_cycles
    sending = np.bincount(sources[first], taken[first], minlength=pes)
    way = DOORBELL_CYCLES + max(sending.max(), received.max()) + int(hops[needs, sources].max()) * noc.hop_cycles
    return int(max(way, SEND_CYCLES + DOZE_CYCLES) + WAKE_CYCLES)


def _first_of_each_multicast(boxes: Boxes, sources: np.ndarray, targets: Boxes, local: np.ndarray) -> np.ndarray:
    """An index per multicast: equal pieces of the same source, for targets with equal strides."""
    strides = np.where(extents(boxes) < extents(targets), extents(targets), 0)
    rows = np.concatenate([sources[:, None], local[:, None], boxes.reshape(len(boxes), -1), strides], axis=1)
    weights = np.cumprod(np.concatenate([[1], rows.max(0)[:-1] + 1]), dtype=np.int64)
    return np.unique(rows @ weights, return_index=True)[1]


def copies_of_many(
    pieces: Boxes, owned: Boxes, needed: Boxes, element_bytes: int, flit_bytes: int
) -> tuple[np.ndarray, np.ndarray]:
    """DMA descriptors and flits of each piece, copied between dense buffers of the two boxes (`dma_copies.py`)."""
    sizes = extents(pieces)
    strides_there, strides_here = (_strides(extents(boxes), element_bytes) for boxes in (owned, needed))
    row = np.full(len(pieces), element_bytes, np.int64)
    rows, longest, count = np.ones_like(row), np.ones_like(row), np.ones_like(row)
    step_there, step_here = np.zeros_like(row), np.zeros_like(row)
    for axis in reversed(range(sizes.shape[1])):
        size, there, here = sizes[:, axis], strides_there[:, axis], strides_here[:, axis]
        many, no_loop = size > 1, step_there == 0
        in_row = many & no_loop & (there == row) & (here == row)
        goes_on = many & ~no_loop & (there == count * step_there) & (here == count * step_here)
        begins = many & ~in_row & ~goes_on
        row = np.where(in_row, row * size, row)
        rows = np.where(many & ~in_row, rows * size, rows)
        count = np.where(goes_on, count * size, np.where(begins, size, count))
        longest = np.maximum(longest, count)
        step_there, step_here = np.where(begins, there, step_there), np.where(begins, here, step_here)
    return rows // longest, rows * -(-row // flit_bytes)


def _strides(sizes: np.ndarray, element_bytes: int) -> np.ndarray:
    inner = np.concatenate([sizes[:, 1:], np.ones((len(sizes), 1), np.int64)], axis=1)
    return element_bytes * np.cumprod(inner[:, ::-1], axis=1)[:, ::-1]
