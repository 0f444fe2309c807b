"""TFLite's integer softmax in gemmlowp fixed point: Q5.26 differences, Q12.19 sums, a Newton reciprocal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npukit.net.fixed_point import exp_of_negative, reciprocal_of_one_plus
from npukit.net.net import Net, Op
from npukit.net.ops import Softmax
from npukit.net.requantize import (
    SOFTMAX_INTEGER_BITS,
    doubling_high_multiply,
    quantization,
    rounding_shift_right,
    softmax_scaling,
)

ACCUMULATOR_INTEGER_BITS = 12


def softmax(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.attributes
    assert isinstance(attributes, Softmax)
    data = operands[0].astype(np.int64)
    table = exp_table(quantization(net, op.inputs[0]).scale, attributes.beta)
    exps = table[data.max(axis=-1, keepdims=True) - data]
    share, shift = shares(exps, terms(exps).sum(axis=-1, keepdims=True))
    return np.clip(rounding_shift_right(share, shift) - 128, -128, 127).astype(np.int8)


def terms(exps: np.ndarray) -> np.ndarray:
    """The terms of the sum: exponentials rounded to the accumulator's precision."""
    return rounding_shift_right(exps, ACCUMULATOR_INTEGER_BITS)


def shares(exps: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Exponentials divided by their row's sum, and the right shift from a quotient to an output."""
    leading_zeros = 32 - _bit_length(sums)
    scale = reciprocal_of_one_plus((sums << leading_zeros) - (1 << 31))
    return doubling_high_multiply(exps, scale), ACCUMULATOR_INTEGER_BITS - leading_zeros + 31 - 8


def exp_table(scale: float, beta: float) -> np.ndarray:
    """exp(-scale * beta * d) in Q0.31 for d = 0..255, and 0 below TFLite's cut-off."""
    scaling = softmax_scaling(scale, beta)
    differences = -np.arange(256, dtype=np.int64)
    scaled = doubling_high_multiply(differences << scaling.left_shift, scaling.multiplier)
    kept = differences >= scaling.diff_min
    return np.where(kept, exp_of_negative(np.where(kept, scaled, 0), SOFTMAX_INTEGER_BITS), 0)


def _bit_length(value: np.ndarray) -> np.ndarray:
    return np.frexp(value.astype(np.float64))[1].astype(np.int64)
