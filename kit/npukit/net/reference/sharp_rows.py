"""Sharp rows for a softmax: the sum of a row's exponentials is the last or first one before an output rounds
differently.

The output then changes with any term added or omitted, and with a small error of the exponential or reciprocal. An edge
is a table entry and a sum at such a boundary. Rows are made for the closest edges of each entry.
"""

from __future__ import annotations

import numpy as np

from npukit.net.net import Net
from npukit.net.ops import Softmax
from npukit.net.ops.softmax import exp_table, shares, terms
from npukit.net.requantize import quantization

MOST_SHARP_ROWS, MOST_ELEMENTS = 1024, 1 << 18
"""Maximum different rows, and maximum elements of all rows."""

CLOSEST_EDGES, ROWS_PER_EDGE = 16, 10
"""Number of closest edges overall, and rows for each of them, with the output at different positions."""

TRIES, SPARE = 48, 2
"""Attempts per row, which succeed if two elements can supply the rest of the sum; rows attempted per wanted row."""

MOST_DRAWN, GREEDY, MOST_LOUD = 10, 2, 6
"""Maximum drawn elements of a row; how many of the last ones take the largest term that fits; maximum sum of a row in
units of the largest term."""

SMALL, MOST_SMALL = 3, 8
"""Elements of a row with small terms, unless the row is short; maximum excess of a small term over the smallest."""

ENTRIES = 256


def sharp_rows(
    net: Net, limits: tuple[np.ndarray, np.ndarray], count: int, rng: np.random.Generator
) -> np.ndarray | None:
    """`count` inputs of sharp rows for a net with a single softmax. None if rows are too short or no row is found."""
    op, tensor = net.ops[0], net.tensor(net.inputs[0])
    length, rows = tensor.shape[-1], count * tensor.elements // tensor.shape[-1]
    table = exp_table(quantization(net, op.inputs[0]).scale, op.of(Softmax).beta)
    rows = min(rows, MOST_SHARP_ROWS, MOST_ELEMENTS // length)
    found = _differences(table, length, rows, rng) if length >= 4 and rows else np.zeros((0, length))
    if len(found) == 0:
        return None
    top, bottom = int(limits[1].min()), int(limits[0].max())
    widest = found.max(axis=1, keepdims=True)
    largest = rng.integers(np.minimum(bottom + widest, top), top + 1)
    values = np.resize(largest - found, (count, tensor.elements))
    return np.clip(values, *limits).astype(tensor.dtype).reshape(count, *tensor.shape)


def _differences(table: np.ndarray, length: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Differences to each row's maximum, at most `count` rows, [row, element]. The edge's element moves through all
    positions."""
    own = terms(table)
    entries, sums = (each[: SPARE * count] for each in _edges(table, own, length))
    more, every = own - own[-1], np.arange(len(sums))[:, np.newaxis]
    left = sums - own[0] - own[entries] - (length - 2) * own[-1]
    small, drawn, left = _drawn(more, left, length - 4, rng)
    pairs = np.full(2 * more[0] + 1, -1)
    pairs[(more + more[:, np.newaxis]).ravel()] = np.arange(ENTRIES**2)
    exact = np.where((left >= 0) & (left < len(pairs)), pairs[np.clip(left, 0, len(pairs) - 1)], -1)
    best = exact.argmax(axis=1)[:, np.newaxis]
    pair = exact[every, best]
    rest = np.concatenate([0 * pair, pair // ENTRIES, pair % ENTRIES, drawn[every[:, 0], best[:, 0]], small], axis=1)
    rows = np.column_stack([entries, rng.permuted(rest, axis=1)])
    turned = (np.arange(length) - every // CLOSEST_EDGES) % length
    return np.take_along_axis(rows, turned, axis=1)[pair[:, 0] >= 0][:count]


def _edges(table: np.ndarray, own: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Table entries and sums of edges: the closest `ROWS_PER_EDGE` times, then the closest of each entry, then the
    second closest."""
    entries, outputs, side = np.meshgrid(np.arange(ENTRIES), np.arange(ENTRIES - 1), np.arange(2), indexing="ij")
    sums = np.floor(table[entries] / 16 / (outputs + 0.5)).astype(np.int64) + side
    least = own[0] + own[entries] + (length - 2) * own[-1]
    possible = (sums >= least) & (sums <= least + min(length - 2, MOST_LOUD) * (own[0] - own[-1]))
    entries, sums, side = entries[possible], sums[possible], side[possible]
    share, shift = shares(table[entries], sums)
    above = (share + (1 << (shift - 1))) & ((1 << shift) - 1)
    distance = np.minimum(above, (1 << shift) - 1 - above) / table[entries]
    group = 2 * entries + side
    order = np.lexsort((distance, group))
    rank = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    closest = np.tile(np.argsort(distance, kind="stable")[:CLOSEST_EDGES], ROWS_PER_EDGE)
    order = np.concatenate([closest, order[np.lexsort((distance[order], rank))]])
    return entries[order], sums[order]


def _drawn(
    more: np.ndarray, left: np.ndarray, length: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw elements and return differences of small terms, [row, element], of other terms, [row, try, element], and the
    rest of each sum.

    `more`: the excess of each entry's term over the smallest term. `left`: the excess to distribute in each row.
    """
    rising, count = more[::-1], min(max(length - SMALL, min(length, 3)), MOST_DRAWN)
    first, behind = (np.searchsorted(rising, rising, side) for side in ("left", "right"))
    small = np.arange(len(left) * (length - count)) % np.searchsorted(rising, MOST_SMALL, "right")
    small = small.reshape(len(left), length - count)
    left = np.repeat((left - rising[small].sum(axis=1))[:, np.newaxis], TRIES, axis=1)
    drawn = np.zeros((*left.shape, count), np.int64)
    for place in range(count):
        wanted = left if place >= count - GREEDY else left * rng.random(left.shape) ** 2
        found = np.maximum(np.searchsorted(rising, wanted, "right") - 1, 0)
        drawn[..., place] = rng.integers(first[found], behind[found])
        left = left - rising[found]
    return ENTRIES - 1 - small, ENTRIES - 1 - drawn, left
