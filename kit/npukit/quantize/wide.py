"""Results computed in float that dense layers read in 16 bits: as upper and lower bytes, rows of one int8 tensor.

A layer multiplies both by its weights at once; float adds the two sums, and rounds nothing between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from npukit.errors import NpukitError
from npukit.net.tensor import Quantization
from npukit.quantize.points import Points
from npukit.quantize.spread import dense_input, read_by_dense, read_in_float

STEPS_OF_A_BYTE = 256.0
"""Steps of the lower byte in one of the upper."""


@dataclass(frozen=True)
class Wide:
    """Results that dense layers read in 16 bits, and those of such layers that stay sums, as only float reads them."""

    results: frozenset[Any] = frozenset()
    sums: frozenset[Any] = frozenset()

    @staticmethod
    def of(points: Points, kept: Collection[Any], wanted: Mapping[str, Any]) -> Wide:
        """The results that are `wanted` so, by their names, of those `kept` in float."""
        others = [name for name, each in wanted.items() if each not in read_by_dense(points, kept)]
        if others:
            raise NpukitError(
                f"dense layers are not all that reads {others[0]}", tries=["leave it out of --keep-int16"]
            )
        results = frozenset(wanted.values())
        sums = (each for each in read_in_float(points, kept) if dense_input(points, each) in results)
        return Wide(results, frozenset(sums))


NOTHING_WIDE = Wide()


def in_bytes(builder: relax.BlockBuilder, value: Any, chosen: Quantization) -> Any:
    """The rows of a value's upper bytes, and behind them those of its lower bytes."""
    turns = tirx.const(1 / chosen.scale, "float32")

    def rows(data: Any) -> Any:
        *outer, count, across = data.shape

        def byte(*place: Any) -> Any:
            row, last = place[-2:]
            steps = data(*place[:-2], tirx.indexmod(row, count), last) * turns
            upper = _rounded(steps)
            return tirx.Select(row < count, upper, _rounded((steps - upper) * STEPS_OF_A_BYTE)).astype("int8")

        return te.compute((*outer, 2 * count, across), byte, name="rows")

    return builder.emit_te(rows, value, primfunc_name_hint="bytes")


def _rounded(steps: Any) -> Any:
    return te.max(te.min(te.round(steps), 127.0), -128.0)


def products(builder: relax.BlockBuilder, rows: Any, weights: Any, scales: np.ndarray) -> Any:
    """The products, in floats, of weights and the numbers of which rows of bytes are given."""
    sums = builder.emit(relax.op.matmul(rows, weights, out_dtype="int32"))

    def whole(sums: Any, scales: Any) -> Any:
        *outer, count, across = sums.shape
        rows = count // 2

        def both(*place: Any) -> Any:
            upper, lower = (
                sums(*each).astype("float32") for each in (place, (*place[:-2], place[-2] + rows, place[-1]))
            )
            return (upper + lower * tirx.const(1 / STEPS_OF_A_BYTE, "float32")) * scales(place[-1])

        return te.compute((*outer, rows, across), both, name="both")

    return builder.emit_te(whole, sums, relax.const(scales), primfunc_name_hint="whole")
