"""Independent results for ONNX models: ONNX Runtime in float, ONNX's reference evaluator for integer products.

ONNX Runtime fuses quantised operators into integer products, and saturates their sums at 16 bits on processors without
the instructions for them. Here fusion is off and ONNX Runtime never runs integer products, therefore the results are
the same on any processor. No other test opens a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import version_converter
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops._quant_utils import reshape_input
from onnx.reference.ops.op_dequantize_linear import DequantizeLinear_25
from onnx.reference.ops.op_quantize_linear import QuantizeLinear_25

PRODUCTS = {"ConvInteger", "MatMulInteger", "QGemm", "QLinearConv", "QLinearMatMul"}

FITS = np.float32(1 << 24)
"""Limit of a quantised value before the zero point is added. Beyond any zero point's effect, and well inside int32."""

DITHER = 0.1
"""Largest shift of a value before rounding, in quantisation steps. Only values this close to half a step round
differently."""

EVALUATED = 21
"""Opset that the evaluator implements completely."""


class QGemm(OpRun):
    """Microsoft's integer dense layer, exact in integers until its result is quantised."""

    op_domain = "com.microsoft"

    def _run(self, *operands: Any, **attributes: Any) -> tuple[np.ndarray]:
        a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = operands
        first = a.T if attributes.get("transA") else a
        second = b.T if attributes.get("transB") else b
        total = (first.astype(np.int64) - a_zero) @ (second.astype(np.int64) - b_zero)
        scales = np.float64(attributes.get("alpha", 1.0)) * np.float64(a_scale) * b_scale.astype(np.float64)
        real = (total if bias is None else total + bias) * scales
        limits = np.iinfo(y_zero.dtype)
        return (np.clip(np.rint(real / y_scale) + y_zero, limits.min, limits.max).astype(y_zero.dtype),)


class NotDefined(Exception):
    """The ONNX specification leaves the result undefined."""


class QuantizeLinear(QuantizeLinear_25):
    """ONNX's operator, correct also where the quotient by the scale exceeds int32: the evaluator's sums wrap there."""

    op_domain = ""

    def _run(self, *args: np.ndarray, axis: int = 1, block_size: int = 0, **rest: Any) -> tuple[np.ndarray]:
        x, scale, *zero_point = args
        if np.isnan(x).any():
            raise NotDefined("what is not a number is quantised")
        most = np.abs(FITS * reshape_input(scale, x.shape, axis, block_size))
        return super()._run(np.clip(x, -most, most), scale, *zero_point, axis=axis, block_size=block_size, **rest)


class Dithered(QuantizeLinear):
    """Rounds with a random shift of up to `DITHER` steps for each number."""

    op_domain = ""
    dice = np.random.default_rng(0)

    def _run(self, *args: np.ndarray, **rest: Any) -> tuple[np.ndarray]:
        x, scale, *zero_point = args
        off = self.dice.uniform(-DITHER, DITHER, x.shape) * reshape_input(scale, x.shape, rest.get("axis", 1))
        return super()._run((x + off).astype(x.dtype), scale, *zero_point, **rest)


Dithered.__name__ = QuantizeLinear.__name__  # the evaluator selects ops by class name


class DequantizeLinear(DequantizeLinear_25):
    """ONNX's operator for the older opsets too, which the evaluator lacks."""

    op_domain = ""


EVALUATOR_OPS: list[type[OpRun]] = [QGemm, QuantizeLinear, DequantizeLinear]
"""Operators that the evaluator lacks or computes wrongly."""
DITHERED_OPS: list[type[OpRun]] = [QGemm, Dithered, DequantizeLinear]


class Session:
    """An open model. A model with integer products is refused, except for `exact_products`: weights of 7 bits, whose
    sums stay within 16 bits."""

    def __init__(self, model: Path | bytes, *, exact_products: bool = False) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        proto = onnx.load_model_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        products = {node.op_type for node in proto.graph.node} & PRODUCTS
        assert exact_products or not products, f"{products} are other numbers on other processors"
        given = model if isinstance(model, bytes) else str(model)
        self._session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [
            np.asarray(output)
            for output in self._session.run(None, {name: np.asarray(value) for name, value in inputs.items()})
        ]


def run_onnx(path: Path, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The model's outputs for one case."""
    model = onnx.load(path)
    return evaluated(model, inputs) if _kinds(model) & PRODUCTS else Session(path).run(inputs)


def evaluated(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of ONNX's evaluator, which multiplies integers exactly."""
    if {node.domain for node in model.graph.node} <= {"", "ai.onnx"}:
        model = version_converter.convert_version(model, max(model.opset_import[0].version, EVALUATED))
    outputs: Any = ReferenceEvaluator(model, new_ops=EVALUATOR_OPS).run(None, dict(inputs))
    return [np.asarray(output) for output in outputs]


def _kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}
