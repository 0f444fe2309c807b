"""Dense layers and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Pair
from npukit.net.net import Net, Op
from npukit.net.ops.convolution import finish, products_of_a_filter, sums_fit
from npukit.net.ops.fields import AxisRule, InputRule, broadcast_rule, whole_rows
from npukit.net.ops.kind import Example, OpSpec, names
from npukit.net.ops.shapes import Shape, together
from npukit.net.requantize import (
    finished,
    matmul_rescaling,
    quantization,
    reach,
    refuse_imprecise,
    refuse_wrapping,
    rescale,
)
from npukit.net.tensor import transposed, untransposed

_MATRIX = "constant w: int8[4,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]"

_ROWS = "int8[1,2,4] scale 0.5 zero 0"

EXACT = 512
"""Number of int8 products, one factor less its zero point, that float32 sums exactly: 255 * 128 * 512 < 2^24."""


@dataclass(frozen=True)
class Dense(Attributes):
    """inputs: activation [.., in], weights [out, in], [bias]."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Matmul(Attributes):
    """inputs: two activations, [.., m, k] and [.., k, n] after transposition by `first` and `second`; leading axes
    broadcast.

    The output is the matrix product, transposed by `result`. Each transposition lists axes as in `Transpose`; empty
    means none. The last axis of the untransposed first input is always k, of the second k or n, of the output n.
    """

    clamp: Pair = (-128, 127)
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    result: tuple[int, ...] = ()


def operand_axes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transpositions of both inputs of a matrix product."""
    return op.of(Matmul).first, op.of(Matmul).second


def _dense(net: Net, op: Op) -> Shape:
    shape, weights = net.tensor(op.inputs[0]).shape, net.tensor(op.inputs[1]).shape
    if len(weights) != 2 or not shape or shape[-1] != weights[1]:
        raise NpukitError(f"weights {list(weights)} do not suit an input of shape {list(shape)}")
    return *shape[:-1], weights[0]


def _matmul(net: Net, op: Op) -> Shape:
    given = [net.tensor(name).shape for name in op.inputs]
    seen = [
        _seen(shape, axes, last) for shape, axes, last in zip(given, operand_axes(op), ((-1,), (-1, -2)), strict=True)
    ]
    if min(map(len, seen)) < 2 or seen[0][-1] != seen[1][-2]:
        raise NpukitError(f"shapes {list(seen[0])} and {list(seen[1])} cannot be multiplied")
    product = (*together([shape[:-2] for shape in seen]), seen[0][-2], seen[1][-1])
    return _seen(product, op.of(Matmul).result, (-1,))


def _seen(shape: Shape, axes: tuple[int, ...], last: tuple[int, ...]) -> Shape:
    """The transposed shape. The input's last axis must move to a position in `last`, counted from the end."""
    if axes and (sorted(axes) != list(range(len(shape))) or axes.index(len(axes) - 1) - len(axes) not in last):
        raise NpukitError(f"a product does not transpose shape {list(shape)} by axes {list(axes)}")
    return transposed(shape, axes)


def _field_of_matmul(net: Net, op: Op) -> list[InputRule]:
    result = op.of(Matmul).result
    product, rank = untransposed(net.tensor(op.output).shape, result), len(net.tensor(op.output).shape)
    places = untransposed(range(rank), result)
    rules = []
    for name, axes, summed in zip(op.inputs, operand_axes(op), (-1, -2), strict=True):
        shape = [*transposed(net.tensor(name).shape, axes)]
        shape[summed] = 0
        rule = (AxisRule(None if each.axis is None else places[each.axis]) for each in broadcast_rule(shape, product))
        rules.append(untransposed(tuple(rule), axes))
    return rules


def dense(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    data, weights, *bias = operands
    return finish(net, op, products(data, quantization(net, op.inputs[0]).zero_point, weights), bias)


def products(data: np.ndarray, zero: int, weights: np.ndarray) -> np.ndarray:
    """The product of `data` minus its zero point and the weights, summed in exact blocks of float32."""
    kind, most = (np.float32, EXACT) if weights.dtype == np.int8 else (np.float64, weights.shape[-1])
    sums = np.zeros((*data.shape[:-1], len(weights)), np.int64)
    for begin in range(0, weights.shape[-1], most):
        part = data[..., begin : begin + most].astype(kind) - kind(zero)
        sums += (part @ weights[:, begin : begin + most].T.astype(kind)).astype(np.int64)
    return sums


def matmul(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    rank = max(len(net.tensor(name).shape) for name in op.inputs)
    first, second = (
        _aligned(_moved(value, axes), len(net.tensor(name).shape), rank).astype(np.float64)
        - quantization(net, name).zero_point
        for name, value, axes in zip(op.inputs, operands, operand_axes(op), strict=True)
    )
    made = _moved((first @ second).astype(np.int64), op.of(Matmul).result)
    return finished(net, op, rescale(made, matmul_rescaling(net, op)))


def _aligned(values: np.ndarray, own: int, rank: int) -> np.ndarray:
    """The operand with axes of size 1 inserted after the case axis, up to `rank`. `own`: the operand's rank without
    cases; constants have no case axis."""
    return values if values.ndim == own else values.reshape(len(values), *(1,) * (rank - own), *values.shape[1:])


def _moved(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The transpose of the last axes. Leading case axes stay."""
    cases = values.ndim - len(axes)
    return values.transpose(*range(cases), *(cases + axis for axis in axes)) if axes else values


def _product_fits(net: Net, op: Op) -> None:
    factor = matmul_rescaling(net, op)
    first, second = op.inputs
    largest = reach(net, first) * reach(net, second) * net.tensor(first).shape[-1]
    refuse_wrapping(largest, factor.shift)
    exact = quantization(net, first).scale * quantization(net, second).scale / quantization(net, op.output).scale
    refuse_imprecise(factor.multiplier * 2.0 ** (factor.shift - 31), exact, largest)


OPS = (
    OpSpec(
        Dense,
        _dense,
        dense,
        Example("dense(x, w)", _ROWS, _ROWS, _MATRIX),
        operands=(2, 3),
        weights=True,
        field=whole_rows,
        products=products_of_a_filter,
        names=names(
            "BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN FULLY_CONNECTED RFFT2D SVDF "
            "UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN",
            "DFT DynamicQuantizeLSTM Gemm GRU LSTM MatMul MatMulNBits QGemm QLinearMatMul RNN",
        ),
        core_cycles=(20, 3.55, 0),
        check=sums_fit,
    ),
    OpSpec(
        Matmul,
        _matmul,
        matmul,
        Example(
            "matmul(x, t)",
            "int8[1,2,2] scale 0.5 zero 0",
            _ROWS,
            before="op t: int8[1,4,2] scale 0.5 zero 0 = transpose(x) axes=[0, 2, 1]",
        ),
        operands=(2, 2),
        field=_field_of_matmul,
        products=lambda net, op: net.tensor(op.output).elements * net.tensor(op.inputs[0]).shape[-1],
        names=names("BATCH_MATMUL", "Attention Einsum MatMul QLinearMatMul"),
        core_cycles=(36, 9.3, 0),
        check=_product_fits,
    ),
)
