"""TFLite's integer softmax in gemmlowp fixed point: Q5.26 differences, Q12.19 sums, a Newton reciprocal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.box import Box
from npukit.net.fixed_point import exp_of_negative, reciprocal_of_one_plus
from npukit.net.net import Net, Op
from npukit.net.ops.fields import first_of_part, whole_rows
from npukit.net.ops.kind import ENTRIES, HIGH, Constant, Events, Example, OpSpec, any_of, names, used
from npukit.net.ops.shapes import same
from npukit.net.requantize import (
    SOFTMAX_INTEGER_BITS,
    WAYS,
    doubling_high_multiply,
    quantization,
    rounding_shift_right,
    softmax_scaling,
)

ACCUMULATOR_INTEGER_BITS = 12


@dataclass(frozen=True)
class Softmax(Attributes):
    """Softmax over the last axis."""

    beta: float = 1.0


def softmax(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.of(Softmax)
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
    leading_zeros = 32 - np.frexp(sums.astype(np.float64))[1].astype(np.int64)
    scale = reciprocal_of_one_plus((sums << leading_zeros) - (1 << 31))
    return doubling_high_multiply(exps, scale), ACCUMULATOR_INTEGER_BITS - leading_zeros + 31 - 8


def exp_table(scale: float, beta: float) -> np.ndarray:
    """exp(-scale * beta * d) in Q0.31 for d = 0..255, and 0 below TFLite's cut-off."""
    scaling = softmax_scaling(scale, beta)
    differences = -np.arange(256, dtype=np.int64)
    scaled = doubling_high_multiply(differences << scaling.left_shift, scaling.multiplier)
    kept = differences >= scaling.diff_min
    return np.where(kept, exp_of_negative(np.where(kept, scaled, 0), SOFTMAX_INTEGER_BITS), 0)


def _check(net: Net, op: Op) -> None:
    scale, beta = quantization(net, op.inputs[0]).scale, op.of(Softmax).beta
    if not (np.isfinite(beta) and beta > 0):
        raise NpukitError(f"its beta is {beta}, not a number above 0")
    if softmax_scaling(scale, beta).left_shift < 0:
        raise NpukitError(f"its input's scale {scale:g} is too small for its fixed point", tries=WAYS)


def _events(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    data = operands[0].astype(np.int64)
    yield ENTRIES, used(data.max(axis=-1, keepdims=True) - data, 256)
    yield HIGH, any_of(result == 127)


def _constants(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    table = exp_table(quantization(net, op.inputs[0]).scale, op.of(Softmax).beta).astype(np.int32)
    yield "exp", table, "exp(-d) in Q0.31 for d steps below the largest"
    yield from first_of_part(net, op, output)


OPS = (
    OpSpec(
        Softmax,
        same,
        softmax,
        Example("softmax(x)", "int8[1,2,2,4] scale 0.00390625 zero -128"),
        field=whole_rows,
        names=names("SOFTMAX", "QLinearSoftmax Softmax"),
        core_cycles=(36, 25, 160),
        check=_check,
        constants=_constants,
        steps=lambda net, op, output: net.tensor(op.inputs[0]).shape[-1] / output.shape[-1],
        events=_events,
    ),
)
