"""Models of float64 and float16 in single precision, the only one that npukit computes in."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from npukit.frontend.onnx.claims import constants_of

OTHERS = (TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT16)
STATING = ("dtype", "output_dtype", "to")
"""Attributes with the type of a result."""


def remarks(model: onnx.ModelProto) -> list[str]:
    """A remark for the user on a model of float64."""
    types = {value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.value_info)}
    types |= {tensor.data_type for tensor in constants_of(model.graph)}
    return ["the file's float64 is computed in float32"] if TensorProto.DOUBLE in types else []


def in_single(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with float32 in place of other floats. Changes the model."""
    for tensor in constants_of(model.graph):
        if tensor.data_type in OTHERS:
            with np.errstate(over="ignore"):
                value = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        if value.type.tensor_type.elem_type in OTHERS:
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name in STATING and attribute.i in OTHERS:
                attribute.i = TensorProto.FLOAT
    return model
