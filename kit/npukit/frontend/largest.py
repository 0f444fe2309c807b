"""The largest or least numbers along an axis and their indices, as loops. TVM's top-k has no code for a bare core."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tvm import relax, te

from npukit.errors import NpukitError

operators: Any = relax.op


def extremes(
    builder: relax.BlockBuilder, data: Any, count: int, axis: int = -1, *, largest: bool = True
) -> tuple[Any, Any]:
    """The `count` largest or least numbers along an axis, in order, and their indices (int32).

    Equal numbers keep their order.
    """
    shape = [int(size) for size in data.ty.shape]
    if not shape or not -len(shape) <= axis < len(shape) or not 1 <= count <= shape[axis]:
        raise NpukitError(f"there is no top {count} along axis {axis} of an input of shape {shape}")
    order = [*(each for each in range(len(shape)) if each != axis % len(shape)), axis % len(shape)]
    rows = _permuted(builder, data, order)
    ranks = builder.emit_te(partial(_ranks, largest), rows, primfunc_name_hint="ranks")
    places = builder.emit_te(partial(_places_by_rank, count), ranks, primfunc_name_hint="top_k")
    values = builder.emit_te(_taken_from_last, rows, places, primfunc_name_hint="top_k_values")
    back = sorted(range(len(order)), key=order.__getitem__)
    return _permuted(builder, values, back), _permuted(builder, places, back)


def _permuted(builder: relax.BlockBuilder, data: Any, order: Sequence[int]) -> Any:
    return data if list(order) == sorted(order) else builder.emit(operators.permute_dims(data, list(order)))


def _ranks(largest: bool, data: Any) -> Any:
    """The rank of each number: how many numbers of the same row precede it."""
    other = te.reduce_axis((0, data.shape[-1]), "other")

    def before(*place: Any) -> Any:
        *row, here = place
        mine, theirs = data(*place), data(*row, other)
        is_beyond = theirs > mine if largest else theirs < mine
        goes_before = te.any(is_beyond, te.all(theirs == mine, other < here))
        return te.sum(goes_before.astype("int32"), axis=other)

    return te.compute(data.shape, before, name="ranks")


def _places_by_rank(count: int, ranks: Any) -> Any:
    """The index of the number with each rank. The maximum keeps it within the row even if NaNs share a rank."""
    place = te.reduce_axis((0, ranks.shape[-1]), "place")

    def found(*position: Any) -> Any:
        *row, rank = position
        return te.max((ranks(*row, place) == rank).astype("int32") * place.astype("int32"), axis=place)

    return te.compute((*ranks.shape[:-1], count), found, name="top_k")


def _taken_from_last(data: Any, places: Any) -> Any:
    return te.compute(places.shape, lambda *place: data(*place[:-1], places(*place)), name="top_k_values")
