"""Sparse constants of TFLite as dense ones.

A constant is stored axis by axis, in an order of its own. A dense axis has all indices. A sparse axis lists the indices
present for each position along the preceding axes. An axis may be split into blocks, whose inner axes come last.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import tflite

SPARSE = tflite.DimensionType.SPARSE_CSR
VECTORS = {
    tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
    tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
    tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
}


def densified(stored: np.ndarray, sparsity: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The dense constant. `stored`: the stored numbers; `sparsity`: their layout."""
    order = np.asarray(sparsity.TraversalOrderAsNumpy()).ravel()
    blocks = np.asarray(sparsity.BlockMapAsNumpy() if sparsity.BlockMapLength() else ()).ravel()
    places = _places(sparsity, prod(shape))
    if sorted(order) != list(range(len(shape) + len(blocks))) or len(places) != len(order):
        raise ValueError("a sparse constant's axes are not those of its shape")
    at = [places[list(order).index(axis)] for axis in range(len(order))]
    for inner, axis in enumerate(blocks, len(shape)):
        size = sparsity.DimMetadata(list(order).index(inner)).DenseSize()
        at[axis] = at[axis] * size + at[inner]
    dense = np.zeros(shape, stored.dtype)
    dense[tuple(at[: len(shape)])] = stored
    return dense


def _places(sparsity: Any, most: int) -> list[np.ndarray]:
    """The index of each stored number along each axis, in the order of storage."""
    places: list[np.ndarray] = []
    count = 1
    for level in range(sparsity.DimMetadataLength()):
        axis = sparsity.DimMetadata(level)
        if axis.Format() == SPARSE:
            ends = _vector(axis.ArraySegmentsType(), axis.ArraySegments())
            own = _vector(axis.ArrayIndicesType(), axis.ArrayIndices())
            counts = np.diff(ends)
            if len(counts) != count or counts.min(initial=0) < 0 or counts.sum() != len(own):
                raise ValueError("a sparse constant's places are not as many as it says")
        elif count * axis.DenseSize() > most:
            raise ValueError("a sparse constant has more numbers than its shape")
        else:
            counts, own = np.full(count, axis.DenseSize()), np.tile(np.arange(axis.DenseSize()), count)
        count = int(counts.sum())
        places = [np.repeat(each, counts) for each in places] + [own]
    return places


def _vector(kind: int, table: Any) -> np.ndarray:
    """The numbers of a vector, in any of the schema's vector types."""
    if kind not in VECTORS or table is None:
        raise ValueError("a sparse constant lacks its places")
    vector: Any = VECTORS[kind]()
    vector.Init(table.Bytes, table.Pos)
    return np.asarray(vector.ValuesAsNumpy()).ravel().astype(np.int64)
