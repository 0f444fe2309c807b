"""Values that are known while ONNX is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.ir import Constant
from tvm.relax.frontend.onnx import onnx_frontend


def known(expression: Any, params: Any) -> np.ndarray | None:
    """The value of an input that is constant."""
    constant = onnx_frontend.get_constant(expression, params) if expression is not None else None
    return constant.value.numpy() if isinstance(constant, Constant) else None  # type: ignore[attr-defined]


def padded(inputs: Any, length: int) -> list[Any]:
    """Inputs with the optional ones that are missing as None."""
    given = list(inputs)
    return given + [None] * (length - len(given))
