"""The quantised ONNX network written as a TFLite int8 flatbuffer: the same integers, in NHWC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np
import onnx
import tflite
from network import CLASSES, Array
from onnx import numpy_helper
from onnx_files import INPUT, OUTPUT, from_onnx

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3
TYPES = {"int8": tflite.TensorType.INT8, "int32": tflite.TensorType.INT32}
RELU, LINEAR = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.NONE
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
ACTIVATIONS = {
    INPUT: (1, 8, 8, 1),
    "stem_out": (1, 8, 8, 16),
    "depthwise_out": (1, 8, 8, 16),
    "pointwise_sum": (1, 8, 8, 16),
    "joined_out": (1, 8, 8, 16),
    "down_out": (1, 4, 4, 32),
    "pooled": (1, 1, 1, 32),
    "flat": (1, 32),
    "scores": (1, CLASSES),
    OUTPUT: (1, CLASSES),
}


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: Sequence[float] = ()
    zero_points: Sequence[int] = ()
    axis: int = 0
    values: Array | None = None


@dataclass(frozen=True)
class Operator:
    """`options`: the fields of the operator's table of options. `options_table`: the table's name in the schema."""

    code: str
    inputs: tuple[str, ...]
    output: str
    options_table: str
    options: Mapping[str, object] = field(default_factory=dict)


def convert(quantised: onnx.ModelProto) -> bytes:
    """The flatbuffer of a QDQ model written by `onnx_files.write_quantised`."""
    return _flatbuffer(_tensors(quantised), _operators())


def _tensors(model: onnx.ModelProto) -> list[Tensor]:
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    activations = [_activation(model, arrays, name) for name in ACTIVATIONS]
    weights = [_constant(arrays, name) for name in ("stem", "depthwise", "pointwise", "down", "dense")]
    biases = [_constant(arrays, f"{w.name}_bias") for w in weights]
    shape = np.array(ACTIVATIONS["flat"], np.int32)
    return [*activations, *weights, *biases, Tensor("flat_shape", shape.shape, "int32", values=shape)]


def _activation(model: onnx.ModelProto, arrays: Mapping[str, Array], name: str) -> Tensor:
    """An activation with the scale and zero point of the node that quantises the float tensor."""
    node = next(n for n in model.graph.node if f"{name}_QuantizeLinear_Output" in n.output)
    scale, zero_point = arrays[node.input[1]], arrays[node.input[2]]
    return Tensor(name, ACTIVATIONS[name], "int8", [float(scale)], [int(zero_point)])


def _constant(arrays: Mapping[str, Array], name: str) -> Tensor:
    values = from_onnx(name, arrays[f"{name}_quantized"])
    prefix = f"{name}_quantized" if name.endswith("_bias") else name
    scales = np.atleast_1d(arrays[f"{prefix}_scale"]).tolist()
    axis = 3 if name == "depthwise" else 0
    return Tensor(name, values.shape, str(values.dtype), scales, [0] * len(scales), axis, values)


def _operators() -> list[Operator]:
    return [
        _conv("stem", INPUT, "stem_out", RELU),
        _conv("depthwise", "stem_out", "depthwise_out", RELU),
        _conv("pointwise", "depthwise_out", "pointwise_sum", LINEAR),
        Operator("ADD", ("pointwise_sum", "stem_out"), "joined_out", "AddOptions", {"FusedActivationFunction": RELU}),
        _conv("down", "joined_out", "down_out", RELU, stride=2),
        Operator("AVERAGE_POOL_2D", ("down_out",), "pooled", "Pool2DOptions", _pool(4)),
        Operator("RESHAPE", ("pooled", "flat_shape"), "flat", "ReshapeOptions"),
        Operator("FULLY_CONNECTED", ("flat", "dense", "dense_bias"), "scores", "FullyConnectedOptions"),
        Operator("SOFTMAX", ("scores",), OUTPUT, "SoftmaxOptions", {"Beta": 1.0}),
    ]


def _conv(name: str, source: str, output: str, activation: int, stride: int = 1) -> Operator:
    options = {"Padding": SAME, "StrideW": stride, "StrideH": stride, "FusedActivationFunction": activation}
    inputs = (source, name, f"{name}_bias")
    if name == "depthwise":
        return Operator("DEPTHWISE_CONV_2D", inputs, output, "DepthwiseConv2DOptions", options | {"DepthMultiplier": 1})
    return Operator("CONV_2D", inputs, output, "Conv2DOptions", options)


def _pool(size: int) -> dict[str, object]:
    return {"Padding": VALID, "StrideW": size, "StrideH": size, "FilterWidth": size, "FilterHeight": size}


class _Writer:
    """A flatbuffer builder that writes tables from their fields."""

    def __init__(self) -> None:
        self.builder = flatbuffers.Builder()

    def table(self, kind: str, **fields: object) -> int:
        getattr(tflite, f"{kind}Start")(self.builder)
        for name, value in fields.items():
            getattr(tflite, f"{kind}Add{name}")(self.builder, value)
        return getattr(tflite, f"{kind}End")(self.builder)

    def numbers(self, values: Sequence[float], dtype: str) -> int:
        return self.builder.CreateNumpyVector(np.asarray(values, dtype))

    def tables(self, offsets: Sequence[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return self.builder.EndVector()

    def text(self, value: str) -> int:
        return self.builder.CreateString(value)


def _flatbuffer(tensors: Sequence[Tensor], operators: Sequence[Operator]) -> bytes:
    writer = _Writer()
    codes = sorted({op.code for op in operators})
    subgraph = _subgraph(writer, tensors, operators, codes)
    fields = {
        "OperatorCodes": writer.tables([_operator_code(writer, code) for code in codes]),
        "Subgraphs": writer.tables([subgraph]),
        "Description": writer.text("npukit example: digits"),
        "Buffers": writer.tables([writer.table("Buffer"), *(_buffer(writer, tensor) for tensor in tensors)]),
    }
    writer.builder.Finish(writer.table("Model", Version=SCHEMA_VERSION, **fields), FILE_IDENTIFIER)
    return bytes(writer.builder.Output())


def _subgraph(writer: _Writer, tensors: Sequence[Tensor], operators: Sequence[Operator], codes: list[str]) -> int:
    index = {tensor.name: i for i, tensor in enumerate(tensors)}
    fields = {
        "Tensors": writer.tables([_tensor(writer, tensor, i + 1) for i, tensor in enumerate(tensors)]),
        "Inputs": writer.numbers([index[INPUT]], "int32"),
        "Outputs": writer.numbers([index[OUTPUT]], "int32"),
        "Operators": writer.tables([_operator(writer, op, index, codes) for op in operators]),
        "Name": writer.text("main"),
    }
    return writer.table("SubGraph", **fields)


def _tensor(writer: _Writer, tensor: Tensor, buffer: int) -> int:
    fields = {"Shape": writer.numbers(tensor.shape, "int32"), "Name": writer.text(tensor.name)}
    if tensor.scales:
        scale, zero_point = writer.numbers(tensor.scales, "float32"), writer.numbers(tensor.zero_points, "int64")
        axis = {"QuantizedDimension": tensor.axis} if len(tensor.scales) > 1 else {}
        fields["Quantization"] = writer.table("QuantizationParameters", Scale=scale, ZeroPoint=zero_point, **axis)
    return writer.table("Tensor", Type=TYPES[tensor.dtype], Buffer=buffer, **fields)


def _buffer(writer: _Writer, tensor: Tensor) -> int:
    """A tensor's own buffer, empty unless the tensor is a constant."""
    if tensor.values is None:
        return writer.table("Buffer")
    return writer.table("Buffer", Data=_aligned_bytes(writer, tensor.values))


def _aligned_bytes(writer: _Writer, values: Array) -> int:
    """16-byte aligned, as TFLite's schema requires for buffers."""
    data = np.ascontiguousarray(values).tobytes()
    writer.builder.StartVector(1, len(data), 16)
    for byte in reversed(data):
        writer.builder.PrependByte(byte)
    return writer.builder.EndVector()


def _operator(writer: _Writer, op: Operator, index: Mapping[str, int], codes: list[str]) -> int:
    return writer.table(
        "Operator",
        OpcodeIndex=codes.index(op.code),
        Inputs=writer.numbers([index[name] for name in op.inputs], "int32"),
        Outputs=writer.numbers([index[op.output]], "int32"),
        BuiltinOptionsType=getattr(tflite.BuiltinOptions, op.options_table),
        BuiltinOptions=writer.table(op.options_table, **op.options),
    )


def _operator_code(writer: _Writer, name: str) -> int:
    code = getattr(tflite.BuiltinOperator, name)
    return writer.table("OperatorCode", DeprecatedBuiltinCode=code, BuiltinCode=code, Version=_version(name))


def _version(name: str) -> int:
    """The first version of each operator with int8. RESHAPE has always had int8."""
    return {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESHAPE": 1}.get(name, 2)
