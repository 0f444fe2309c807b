"""Float results for dense layers in 16 bits, as an int8 tensor with rows of upper bytes and rows of lower bytes.

A layer multiplies both kinds of rows by the weights at once. Float ops add the two sums without rounding in between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax, te, tirx

from npukit.errors import NpukitError
from npukit.frontend.expressions import dequantize, quantize
from npukit.net.importer.expressions import shape_of
from npukit.net.tensor import Quantization
from npukit.quantize.points import Points
from npukit.quantize.spread import dense_input, read_by_dense, read_in_float

operators: Any = relax.op

STEPS_OF_A_BYTE = 256.0
"""Steps of the lower byte per step of the upper byte."""
WITHOUT_SCALE = Quantization((1.0,), (0,))
"""Quantisation of bytes as themselves."""


@dataclass(frozen=True)
class Wide:
    """Results that dense layers read in 16 bits. `sums`: the layers' results kept as sums, as only float reads them."""

    results: frozenset[Any] = frozenset()
    sums: frozenset[Any] = frozenset()

    @staticmethod
    def of(points: Points, kept: Collection[Any], wanted: Mapping[str, Any]) -> Wide:
        """The wide results. `kept`: results in float; `wanted`: results to be read in 16 bits, by name."""
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
    """The rows of a value's upper bytes, followed by the rows of the lower bytes. Each element is computed
    independently, so that PEs may share the row of a single token."""

    def byte(steps: Any) -> Any:
        rounded: Any = te.max(te.min(te.round(steps), 127.0), -128.0)
        return rounded.astype("int8")

    def upper(data: Any, turns: Any) -> Any:
        return te.compute(data.shape, lambda *place: byte(data(*place) * turns(0)))

    def lower(data: Any, upper: Any, turns: Any) -> Any:
        def rest(*place: Any) -> Any:
            return data(*place) * turns(0) - upper(*place).astype("float32")

        return te.compute(data.shape, lambda *place: byte(rest(*place) * STEPS_OF_A_BYTE))

    turns = relax.const(np.array([1 / chosen.scale], np.float32))
    high = builder.emit_te(upper, value, turns, primfunc_name_hint="upper")
    low = builder.emit_te(lower, value, high, turns, primfunc_name_hint="lower")
    both = operators.concat([dequantize(each, WITHOUT_SCALE, "int8") for each in (high, low)], axis=-2)
    return builder.emit(quantize(both, WITHOUT_SCALE, "int8"))


def products(builder: relax.BlockBuilder, rows: Any, weights: Any, scales: np.ndarray) -> Any:
    """The products of weights and 16-bit numbers, given as rows of bytes, in float."""

    def whole(upper: Any, lower: Any, scales: Any) -> Any:
        def both(*place: Any) -> Any:
            high, low = (each(*place).astype("float32") for each in (upper, lower))
            return (high + low * tirx.const(1 / STEPS_OF_A_BYTE, "float32")) * scales(place[-1])

        return te.compute(upper.shape, both, name="both")

    sums = builder.emit(operators.matmul(rows, weights, out_dtype="int32"))
    *outer, twice, _ = shape_of(sums)
    axis, count = len(outer), twice // 2
    slices = (operators.strided_slice(sums, [axis], [begin], [begin + count]) for begin in (0, count))
    return builder.emit_te(whole, *map(builder.emit, slices), relax.const(scales), primfunc_name_hint="whole")
