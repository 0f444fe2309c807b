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
from npukit.frontend.qdq import dequantize, quantize
from npukit.net.importer.expressions import shape_of
from npukit.net.tensor import Quantization
from npukit.quantize.points import Points
from npukit.quantize.spread import dense_input, read_by_dense, read_in_float

operators: Any = relax.op

STEPS_OF_A_BYTE = 256.0
"""Steps of the lower byte in one of the upper."""
STEPS = Quantization((1.0,), (0,))
"""Bytes as they are."""


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
    """The rows of a value's upper bytes, and behind them those of its lower bytes.

    Each is made element by element, so that PEs may share the row of a single token.
    """
    turns = relax.const(np.array([1 / chosen.scale], np.float32))
    high = builder.emit_te(_upper, value, turns, primfunc_name_hint="upper")
    low = builder.emit_te(_lower, value, high, turns, primfunc_name_hint="lower")
    both = operators.concat([dequantize(each, STEPS, "int8") for each in (high, low)], axis=-2)
    return builder.emit(quantize(both, STEPS, "int8"))


def _upper(data: Any, turns: Any) -> Any:
    return te.compute(data.shape, lambda *place: _byte(data(*place) * turns(0)))


def _lower(data: Any, upper: Any, turns: Any) -> Any:
    def byte(*place: Any) -> Any:
        return _byte((data(*place) * turns(0) - upper(*place).astype("float32")) * STEPS_OF_A_BYTE)

    return te.compute(data.shape, byte)


def _byte(steps: Any) -> Any:
    rounded: Any = te.max(te.min(te.round(steps), 127.0), -128.0)
    return rounded.astype("int8")


def products(builder: relax.BlockBuilder, rows: Any, weights: Any, scales: np.ndarray) -> Any:
    """The products, in floats, of weights and the numbers of which rows of bytes are given."""
    sums = builder.emit(operators.matmul(rows, weights, out_dtype="int32"))
    *outer, twice, _ = shape_of(sums)
    axis, count = len(outer), twice // 2
    slices = (operators.strided_slice(sums, [axis], [begin], [begin + count]) for begin in (0, count))
    return builder.emit_te(_whole, *map(builder.emit, slices), relax.const(scales), primfunc_name_hint="whole")


def _whole(upper: Any, lower: Any, scales: Any) -> Any:
    def both(*place: Any) -> Any:
        high, low = (each(*place).astype("float32") for each in (upper, lower))
        return (high + low * tirx.const(1 / STEPS_OF_A_BYTE, "float32")) * scales(place[-1])

    return te.compute(upper.shape, both, name="both")
