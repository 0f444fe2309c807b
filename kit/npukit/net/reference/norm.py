"""Reference of layer norm and RMS norm in integers: integer root, one Newton step for its reciprocal, two high
products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.norms import FRACTION_BITS, headroom
from npukit.net.ops import Norm, NormBySquares, Squares
from npukit.net.requantize import quantization


def norm(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes, (data, multipliers, offsets) = op.attributes, operands
    assert isinstance(attributes, Norm)
    values, length = data.astype(np.int64), data.shape[-1]
    zero = length * quantization(net, op.inputs[0]).zero_point
    distances = length * values - (values.sum(-1, keepdims=True) if attributes.centred else zero)
    spread = (distances * distances).sum(-1, keepdims=True) // length << 2 * FRACTION_BITS
    return _results(attributes, distances, spread, (multipliers, offsets))


def _results(
    attributes: Norm | NormBySquares, distances: np.ndarray, spread: np.ndarray, constants: Sequence[np.ndarray]
) -> np.ndarray:
    """The distances divided by the root of the row's mean square, scaled, offset and clamped."""
    length, (multipliers, offsets) = distances.shape[-1], constants
    inverse, shift = inverse_root(spread + attributes.epsilon)
    left = np.minimum(shift + FRACTION_BITS - 1 - headroom(length), 31)
    inverse = inverse >> np.maximum(-left, 0)
    normalised = ((distances << np.maximum(left, 0)) * inverse + (1 << 31)) >> 32
    results = (normalised * multipliers + (offsets.astype(np.int64) << 32)) >> (32 + attributes.shift)
    return np.clip(results, *attributes.clamp).astype(np.int8)


def squares(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    assert isinstance(op.attributes, Squares)
    distances = operands[0].astype(np.int64) - quantization(net, op.inputs[0]).zero_point
    pieces = distances.reshape(*distances.shape[:-1], -1, op.attributes.piece)
    return (pieces * pieces).sum(-1, keepdims=True).astype(np.int32)


def norm_by_squares(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The RMS norm with precomputed sums of squares."""
    attributes, (data, squared, *constants) = op.attributes, operands
    assert isinstance(attributes, NormBySquares)
    length = data.shape[-1]
    distances = length * (data.astype(np.int64) - quantization(net, op.inputs[0]).zero_point)
    spread = length * squared.astype(np.int64).sum((-2, -1))[..., np.newaxis] << 2 * FRACTION_BITS
    return _results(attributes, distances, spread, constants)


def inverse_root(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / sqrt(value) of positive numbers below 2^62 as i * 2^(shift - 62), i just above 2^30 to 2^31 - 1."""
    shift = (64 - _bits(values)) // 2
    top = np.where(shift >= 16, values << np.maximum(2 * shift - 32, 0), values >> np.maximum(32 - 2 * shift, 0))
    root = np.floor(np.sqrt(top)).astype(np.int64)
    precise = (root << 15) + ((top - root * root) << 14) // root
    first = (1 << 31) // root << 15
    error = (1 << 61) - precise * first
    return np.minimum(first + ((error >> 30) * first >> 31), (1 << 31) - 1), shift


def _bits(values: np.ndarray) -> np.ndarray:
    """Bit lengths of positive numbers. Computed in halves, because float64 holds each half exactly."""
    high = values >> 31
    return np.where(high > 0, 31 + np.frexp(high)[1], np.frexp(values & ((1 << 31) - 1))[1]).astype(np.int64)
