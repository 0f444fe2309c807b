"""Values known during the import of an ONNX file."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.ir import Constant
from tvm.relax.frontend.onnx import onnx_frontend


def known(expression: Any, params: Any) -> np.ndarray | None:
    """The value of a constant input; None for other inputs."""
    constant = onnx_frontend.get_constant(expression, params) if expression is not None else None
    return constant.value.numpy() if isinstance(constant, Constant) else None  # type: ignore[attr-defined]


def padded(inputs: Any, length: int) -> list[Any]:
    """Inputs, with None for missing optional ones."""
    given = list(inputs)
    return given + [None] * (length - len(given))
