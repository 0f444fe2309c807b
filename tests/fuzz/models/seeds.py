"""Valid files to be damaged. Small files are chosen, because damage then hits essential parts."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import onnx
import tflite
from onnx import numpy_helper

from helpers import CHECKOUT
from npukit.net.ops.table import SPECS

sys.path.append(str(CHECKOUT / "tests/frontend"))
from tflite_models import Model  # pyright: ignore[reportMissingImports]

DIGITS = CHECKOUT / "examples/digits"
SMALL = 20_000
"""Size limit in bytes; larger node tests find no more."""


def _image(shape: tuple[int, ...] = (1, 6, 7, 4)) -> Model:
    model = Model()
    model.input("x", shape, 0.05, -3)
    return model


def _windows() -> bytes:
    model = _image()
    random = np.random.default_rng(1)
    model.constant("w", random.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8), np.full(5, 0.01))
    model.constant("b", random.integers(-99, 99, 5).astype(np.int32), np.full(5, 0.0005))
    model.tensor("c", (1, 6, 7, 5), 0.1, 4)
    same = tflite.Padding.SAME
    model.op("CONV_2D", ["x", "w", "b"], ["c"], "Conv2D", Padding=same, StrideH=1, StrideW=1)
    model.tensor("p", (1, 3, 4, 5), 0.1, 4)
    size = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2, "Padding": same}
    model.op("MAX_POOL_2D", ["c"], ["p"], "Pool2D", **size)
    model.constant("d", random.integers(-127, 128, (1, 3, 3, 5)).astype(np.int8), np.full(5, 0.02), axis=3)
    model.tensor("y", (1, 3, 4, 5), 0.2, 1)
    options = {"Padding": same, "StrideH": 1, "StrideW": 1, "DepthMultiplier": 1}
    model.op("DEPTHWISE_CONV_2D", ["p", "d", ""], ["y"], "DepthwiseConv2D", **options)
    return model.bytes(["y"])


def _rows() -> bytes:
    model = _image((1, 8))
    model.constant("w", np.random.default_rng(2).integers(-127, 128, (6, 8)).astype(np.int8), 0.02)
    model.tensor("f", (1, 6), 0.1, 2)
    model.op("FULLY_CONNECTED", ["x", "w", ""], ["f"], "FullyConnected")
    model.tensor("s", (1, 6), 1 / 256, -128)
    model.op("SOFTMAX", ["f"], ["s"], "Softmax", Beta=1.0)
    model.constant("axis", np.array(1, np.int32))
    model.tensor("y", (1,), dtype="int32")
    model.op("ARG_MAX", ["s", "axis"], ["y"], "ArgMax", OutputType=tflite.TensorType.INT32)
    return model.bytes(["y"])


def _moves() -> bytes:
    model = _image()
    model.constant("around", np.array([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32))
    model.tensor("p", (1, 8, 9, 4), 0.05, -3)
    model.op("PAD", ["x", "around"], ["p"], "Pad")
    for name, values in (("begin", [0, 1, 0, 0]), ("end", [1, 7, 9, 4]), ("steps", [1, 2, 1, 1])):
        model.constant(name, np.array(values, np.int32))
    model.tensor("s", (1, 3, 9, 4), 0.05, -3)
    model.op("STRIDED_SLICE", ["p", "begin", "end", "steps"], ["s"], "StridedSlice")
    model.constant("axes", np.array([0, 3, 1, 2], np.int32))
    model.tensor("t", (1, 4, 3, 9), 0.05, -3)
    model.op("TRANSPOSE", ["s", "axes"], ["t"], "Transpose")
    model.tensor("j", (1, 4, 6, 9), 0.05, -3)
    model.op("CONCATENATION", ["t", "t"], ["j"], "Concatenation", Axis=2)
    model.constant("shape", np.array([1, -1], np.int32))
    model.tensor("y", (1, 216), 0.05, -3)
    model.op("RESHAPE", ["j", "shape"], ["y"], "Reshape")
    return model.bytes(["y"])


def _elements() -> bytes:
    model = _image()
    for name in ("l", "a", "m", "y"):
        model.tensor(name, (1, 6, 7, 4), 1 / 256 if name == "l" else 0.04, -128 if name == "l" else 3)
    model.op("LOGISTIC", ["x"], ["l"])
    model.op("ADD", ["x", "l"], ["a"], "Add")
    model.op("MUL", ["a", "x"], ["m"], "Mul")
    model.op("LEAKY_RELU", ["m"], ["y"], "LeakyRelu", Alpha=0.1)
    return model.bytes(["y"])


@cache
def tflite_seeds() -> tuple[bytes, ...]:
    return _windows(), _rows(), _moves(), _elements(), (DIGITS / "digits_int8.tflite").read_bytes()


@cache
def pytorch_seeds() -> tuple[bytes, ...]:
    """Programs of torch.export: layers of an image network, a recurrent network, a network quantised by PyTorch."""
    import torch  # pyright: ignore[reportMissingImports]
    from pytorch_models import Quantised  # pyright: ignore[reportMissingImports]

    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(27, 4)
    )
    programs = (
        (layers, torch.zeros(1, 1, 5, 5)),
        (torch.nn.GRU(4, 3, batch_first=True), torch.zeros(1, 3, 4)),
        (Quantised(), torch.zeros(1, 3, 8, 8)),
    )
    return tuple(_exported(module.eval(), example) for module, example in programs)


def _exported(module: Any, example: Any) -> bytes:
    import torch  # pyright: ignore[reportMissingImports]

    file = BytesIO()
    torch.export.save(torch.export.export(module, (example,)), file)
    return file.getvalue()


@cache
def onnx_example() -> tuple[bytes, ...]:
    """Only the example, for its short loading time."""
    return ((DIGITS / "digits_qdq.onnx").read_bytes(),)


@cache
def onnx_seeds() -> tuple[bytes, ...]:
    """The example, and ONNX's node tests of supported ops, with int8 inputs and outputs."""
    with warnings.catch_warnings(action="ignore"):
        from onnx.backend.test.loader import load_model_tests

        models = [case.model for case in load_model_tests(kind="node") if case.model is not None]
    read = {name for spec in SPECS.values() for name in spec.names.onnx}
    small = [model for model in models if model.ByteSize() < SMALL and {n.op_type for n in model.graph.node} <= read]
    return (*onnx_example() * 50, *map(quantised_ends, small))


def quantised_ends(model: onnx.ModelProto) -> bytes:
    """The same model with int8 inputs and outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    ends = [
        numpy_helper.from_array(np.array(0.1, np.float32), "_s"),
        numpy_helper.from_array(np.int8(3) * np.ones((), np.int8), "_z"),
    ]
    graph.initializer.extend(ends)
    for value in graph.input:
        name, value.name = value.name, f"{value.name}_q"
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
        graph.node.insert(0, onnx.helper.make_node("DequantizeLinear", [value.name, "_s", "_z"], [name]))
    for value in graph.output:
        name, value.name = value.name, f"{value.name}_q"
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
        graph.node.append(onnx.helper.make_node("QuantizeLinear", [name, "_s", "_z"], [value.name]))
    return made.SerializeToString()
