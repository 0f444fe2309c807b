"""Relax's quantize and dequantize operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from npukit.net.tensor import Quantization

operators: Any = relax.op


def dequantize(expression: relax.Expr, quantization: Quantization, dtype: str) -> relax.Expr:
    """The real numbers for integers of type `dtype`."""
    return operators.dequantize(expression, *_constants(quantization, dtype), axis=_axis(quantization))


def quantize(expression: relax.Expr, quantization: Quantization, dtype: str) -> relax.Expr:
    """Real numbers as integers of type `dtype`."""
    scales, zero_points = _constants(quantization, dtype)
    return operators.quantize(expression, scales, zero_points, axis=_axis(quantization), out_dtype=dtype)


def _axis(quantization: Quantization) -> int:
    return -1 if quantization.axis is None else quantization.axis


def _constants(quantization: Quantization, dtype: str) -> tuple[relax.Expr, relax.Expr]:
    shape = () if quantization.axis is None else (-1,)
    scales = np.array(quantization.scales, np.float32).reshape(shape)
    return relax.const(scales), relax.const(np.array(quantization.zero_points, dtype).reshape(shape))
