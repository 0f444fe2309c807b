"""The example network as ONNX: in float, and quantised by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from network import CLASSES, WINDOWS, Array, Parameters
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

INPUT, OUTPUT = "image", "probabilities"
OPSET = 13
# TFLite's int8 specification requires this quantisation for a softmax.
SOFTMAX_QUANTIZATION = {"scale": np.array(1 / 256, np.float32), "zero_point": np.array(-128, np.int8)}


def float_model(p: Parameters) -> onnx.ModelProto:
    """The network in NCHW, as other tools export it, with a batch of 1."""
    nodes = [
        _conv("stem", INPUT),
        _node("Relu", ["stem_sum"], "stem_out"),
        _conv("depthwise", "stem_out", group=16),
        _node("Relu", ["depthwise_sum"], "depthwise_out"),
        _conv("pointwise", "depthwise_out"),
        _node("Add", ["pointwise_sum", "stem_out"], "joined_sum"),
        _node("Relu", ["joined_sum"], "joined_out"),
        _conv("down", "joined_out"),
        _node("Relu", ["down_sum"], "down_out"),
        _node("AveragePool", ["down_out"], "pooled", kernel_shape=[4, 4]),
        _node("Reshape", ["pooled", "flat_shape"], "flat"),
        _node("Gemm", ["flat", "dense", "dense_bias"], "scores", transB=1),
        _node("Softmax", ["scores"], OUTPUT, axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits", [_value(INPUT, [1, 1, 8, 8])], [_value(OUTPUT, [1, CLASSES])], _initializers(p)
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="npukit example")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    return model


def parameters_of(model: onnx.ModelProto) -> Parameters:
    """The parameters of a model from `float_model`."""
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer if i.name != "flat_shape"}
    return {name: from_onnx(name, array) for name, array in arrays.items()}


def write_quantised(float_file: Path, qdq_file: Path, calibration: Array) -> None:
    """Quantises activations and weights to int8, the weights of each output channel with their own scale.

    The dense layer's weights share a single scale, because every TFLite runtime reads this form.
    """
    overrides = {"dense": [{"quant_type": QuantType.QInt8}], OUTPUT: [SOFTMAX_QUANTIZATION]}
    quantize_static(
        float_file,
        qdq_file,
        _Images(calibration),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        extra_options={"WeightSymmetric": True, "TensorQuantOverrides": overrides},
    )


class _Images(CalibrationDataReader):
    def __init__(self, images: Array) -> None:
        self._feeds = ({INPUT: image} for image in images)

    def get_next(self) -> dict[str, Array]:
        """The next image for calibration; empty after the last."""
        return next(self._feeds, {})


def _node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [output], name=output, **attributes)


def _conv(name: str, source: str, group: int = 1) -> onnx.NodeProto:
    window = WINDOWS[name]
    return _node(
        "Conv",
        [source, name, f"{name}_bias"],
        f"{name}_sum",
        kernel_shape=[window.size] * 2,
        strides=[window.stride] * 2,
        pads=[window.before] * 2 + [window.after] * 2,
        group=group,
    )


def _value(name: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _initializers(p: Parameters) -> list[onnx.TensorProto]:
    arrays = {name: _to_onnx(name, array) for name, array in p.items()}
    arrays["flat_shape"] = np.array([1, 32], np.int64)
    return [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()]


def _to_onnx(name: str, array: Array) -> Array:
    """OHWI to OIHW; a depthwise layer's 1HWO to O1HW."""
    if array.ndim < 4:
        return array
    return array.transpose(3, 0, 1, 2) if name == "depthwise" else array.transpose(0, 3, 1, 2)


def from_onnx(name: str, array: Array) -> Array:
    if array.ndim < 4:
        return array
    return array.transpose(1, 2, 3, 0) if name == "depthwise" else array.transpose(0, 2, 3, 1)
