"""Loops of running sums and products. TVM's own scan cannot be joined with other loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tvm import te, tirx

loops: Any = te


product = loops.comm_reducer(lambda first, second: first * second, lambda dtype: tirx.const(1, dtype), "product")


def running(total_of: Callable[..., Any], start: int, builder: Any, call: Any) -> Any:
    """Each total is computed anew, so that totals are independent of each other. `start`: the total of nothing."""
    told, (data,) = call.attrs, call.args
    shape, dtype = [int(size) for size in call.ty.shape], str(call.ty.dtype)
    if told.axis is None:
        return None
    axis, exclusive = int(told.axis) % len(shape), bool(told.exclusive)
    totals = partial(_totals, total_of, start, axis, exclusive, dtype)
    return builder.call_te(totals, data, primfunc_name_hint="running_products" if start else "running_sums")


cumsum, cumprod = partial(running, loops.sum, 0), partial(running, product, 1)


def _totals(total_of: Callable[..., Any], start: int, axis: int, exclusive: bool, dtype: str, data: Any) -> Any:
    other = loops.reduce_axis((0, data.shape[axis]), "other")

    def total(*place: Any) -> Any:
        at = [other if each == axis else index for each, index in enumerate(place)]
        met = other < place[axis] if exclusive else other <= place[axis]
        term = tirx.if_then_else(met, data(*at).astype(dtype), tirx.const(start, dtype))
        return total_of(term, axis=other)

    return loops.compute(data.shape, total, name="running_totals")
