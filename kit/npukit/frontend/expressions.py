"""Relax expressions shared by the importers: quantisation, slices, and the largest numbers of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from tvm import relax, te

from npukit.errors import NpukitError
from npukit.net.tensor import Quantization

operators: Any = relax.op


def dequantize(expression: relax.Expr, quantization: Quantization, dtype: str) -> relax.Expr:
    """The real numbers for integers of type `dtype`."""
    return operators.dequantize(expression, *_scaling(quantization, dtype), axis=_axis(quantization))


def quantize(expression: relax.Expr, quantization: Quantization, dtype: str) -> relax.Expr:
    """Real numbers as integers of type `dtype`."""
    return operators.quantize(expression, *_scaling(quantization, dtype), axis=_axis(quantization), out_dtype=dtype)


def _axis(quantization: Quantization) -> int:
    return -1 if quantization.axis is None else quantization.axis


def _scaling(quantization: Quantization, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    """Scales and zero points as constants."""
    shape = () if quantization.axis is None else (-1,)
    scales = np.array(quantization.scales, np.float32).reshape(shape)
    return relax.const(scales), relax.const(np.array(quantization.zero_points, dtype).reshape(shape))


def elu(data: Any, alpha: float, scale: float = 1.0, steep: float = 1.0) -> Any:
    """`scale` times x above 0, and `scale` times `alpha` (exp(`steep` x) - 1) below."""
    given = data if steep == 1 else operators.multiply(data, relax.const(steep, "float32"))
    below = operators.nn.relu(operators.subtract(relax.const(1.0, "float32"), operators.exp(given)))
    above = operators.nn.relu(data)
    above = above if scale == 1 else operators.multiply(above, relax.const(scale, "float32"))
    return operators.add(operators.multiply(relax.const(-alpha * scale, "float32"), below), above)


def place(builder: relax.BlockBuilder, data: Any, axis: int, index: int) -> Any:
    """The values at one index of an axis, without this axis. A negative index counts from the end."""
    part = taken(builder, data, axis, [index])
    return builder.emit(operators.squeeze(part, [axis % len(data.ty.shape)]))


def taken(builder: relax.BlockBuilder, data: Any, axis: int, indices: Sequence[int]) -> Any:
    """The values at evenly spaced indices of an axis; None if the spacing is uneven."""
    size = int(data.ty.shape[axis])
    places = np.array([index % size for index in indices])
    steps = np.unique(np.diff(places))
    if len(steps) > 1 or min(steps, default=1) < 1:
        return None
    step = int(steps[0]) if len(steps) else 1
    return builder.emit(operators.strided_slice(data, [axis], [int(places[0])], [int(places[-1]) + 1], [step]))


def extremes(
    builder: relax.BlockBuilder, data: Any, count: int, axis: int = -1, *, largest: bool = True
) -> tuple[Any, Any]:
    """The `count` largest or least numbers along an axis, in order, and their indices (int32), as loops. Equal numbers
    keep their order. TVM's top-k has no code for a bare core."""
    shape = [int(size) for size in data.ty.shape]
    if not shape or not -len(shape) <= axis < len(shape) or not 1 <= count <= shape[axis]:
        raise NpukitError(f"there is no top {count} along axis {axis} of an input of shape {shape}")
    order = [*(each for each in range(len(shape)) if each != axis % len(shape)), axis % len(shape)]
    rows = _permuted(builder, data, order)
    ranks = builder.emit_te(partial(_ranks, largest), rows, primfunc_name_hint="ranks")
    places = builder.emit_te(partial(_places_by_rank, count), ranks, primfunc_name_hint="top_k")
    values = builder.emit_te(_at_places, rows, places, primfunc_name_hint="top_k_values")
    back = sorted(range(len(order)), key=order.__getitem__)
    return _permuted(builder, values, back), _permuted(builder, places, back)


def _ranks(largest: bool, data: Any) -> Any:
    """The rank of each number: the count of earlier numbers of the row in the wanted order."""
    other = te.reduce_axis((0, data.shape[-1]), "other")

    def before(*place: Any) -> Any:
        *row, here = place
        mine, theirs = data(*place), data(*row, other)
        goes_before = te.any(theirs > mine if largest else theirs < mine, te.all(theirs == mine, other < here))
        return te.sum(goes_before.astype("int32"), axis=other)

    return te.compute(data.shape, before, name="ranks")


def _places_by_rank(count: int, ranks: Any) -> Any:
    """The index of the number with each rank. The maximum stays within the row even if NaNs share a rank."""
    place = te.reduce_axis((0, ranks.shape[-1]), "place")

    def found(*position: Any) -> Any:
        *row, rank = position
        return te.max((ranks(*row, place) == rank).astype("int32") * place.astype("int32"), axis=place)

    return te.compute((*ranks.shape[:-1], count), found, name="top_k")


def _at_places(data: Any, places: Any) -> Any:
    return te.compute(places.shape, lambda *place: data(*place[:-1], places(*place)), name="top_k_values")


def _permuted(builder: relax.BlockBuilder, data: Any, order: Sequence[int]) -> Any:
    return data if list(order) == sorted(order) else builder.emit(operators.permute_dims(data, list(order)))
