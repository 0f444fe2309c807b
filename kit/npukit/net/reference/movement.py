"""Reference of ops that move or select values without changing any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import ArgMax, Concat, Pad, ResizeNearest, Slice, TopK, Transpose


def reshape(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    return operands[0].reshape(-1, *net.tensor(op.output).shape)


def transpose(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Transpose)
    return operands[0].transpose(0, *(axis + 1 for axis in attributes.axes))


def pad(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Pad)
    widths = [(0, 0), *zip(attributes.before, attributes.after, strict=True)]
    return np.pad(operands[0], widths, constant_values=attributes.value)


def concat(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenate the inputs. A constant input is repeated for every case."""
    attributes = op.attributes
    assert isinstance(attributes, Concat)
    cases = max(len(value) for name, value in zip(op.inputs, operands, strict=True) if name not in net.constants)
    parts = [
        np.broadcast_to(value, (cases, *value.shape)) if name in net.constants else value
        for name, value in zip(op.inputs, operands, strict=True)
    ]
    return np.concatenate(parts, axis=attributes.axis + 1)


def slice_(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Slice)
    parts = zip(attributes.begin, attributes.end, attributes.strides, strict=True)
    return operands[0][(slice(None), *(slice(*part) for part in parts))]


def resize_nearest(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, ResizeNearest)
    return operands[0][:, :, list(attributes.rows)][:, :, :, list(attributes.columns)]


def argmax(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, ArgMax)
    return operands[0].argmax(axis=attributes.axis + 1).astype(net.tensor(op.output).dtype)


def top_k(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, (values,) = op.attributes, operands
    assert isinstance(attributes, TopK)
    best = np.argsort(-values.astype(np.int64), axis=-1, kind="stable")[..., : attributes.count]
    chosen = np.take_along_axis(values, best, axis=-1) if attributes.values else best
    return chosen.astype(net.tensor(op.output).dtype)
