"""Loops of running sums. TVM's own scan cannot be joined with other loops."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx

loops: Any = te


def cumsum(builder: Any, call: Any) -> Any:
    """Each sum is computed anew, so that sums are independent of each other."""
    told, (data,) = call.attrs, call.args
    shape, dtype = [int(size) for size in call.ty.shape], str(call.ty.dtype)
    if told.axis is None:
        return None
    return builder.call_te(_summed, data, int(told.axis) % len(shape), bool(told.exclusive), dtype)


def _summed(data: Any, axis: int, exclusive: bool, dtype: str) -> Any:
    other = loops.reduce_axis((0, data.shape[axis]), "other")

    def total(*place: Any) -> Any:
        at = [other if each == axis else index for each, index in enumerate(place)]
        met = other < place[axis] if exclusive else other <= place[axis]
        term = tirx.if_then_else(met, data(*at).astype(dtype), tirx.const(0, dtype))
        return loops.sum(term, axis=other)

    return loops.compute(data.shape, total, name="running_sums")
