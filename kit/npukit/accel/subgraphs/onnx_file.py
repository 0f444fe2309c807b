"""A subgraph as an ONNX model in QDQ form, for ONNX compilers.

ONNX defines these ops on reals, so results may differ by one from the integers of TensorFlow Lite. Ops with windows
need channels first: tensors are transposed where a reader needs the other order. The model's inputs and outputs are as
in the net.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.accel.geometry import window_of
from npukit.errors import NpukitError
from npukit.net import ops
from npukit.net.net import Net, Op
from npukit.net.requantize import quantization

if TYPE_CHECKING:
    from onnx import ModelProto

OPSET, IR_VERSION = 17, 8
LAST, _FIRST = "", " channels first"
"""Suffixes of a tensor's name: in the net's order, or with channels before height and width."""

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_LEAST, _MOST = -128, 127


def subgraph_onnx(net: Net, op: Op) -> bytes:
    """The op's parts as an ONNX file. NpukitError for a kind of op without an ONNX form, or without `onnx`."""
    graph = _Graph(net.alone(op))
    for part in graph.net.ops:
        write = _FORMS.get(type(part.attributes))
        if write is None:
            kind = f"{part.name}: ONNX has no form of {part.kind} here"
            raise NpukitError(kind, tries=["refuse this kind in the plug-in"])
        write(graph, part)
    return graph.model().SerializeToString()


class _Graph:
    """Nodes and constants so far, and the existing tensors with their orders of axes."""

    def __init__(self, net: Net) -> None:
        try:
            import onnx
        except ImportError as error:
            raise NpukitError("subgraphs as ONNX need the package onnx", tries=["pip install npukit[onnx]"]) from error
        self._onnx, self.net = onnx, net
        self._nodes: list[Any] = []
        self._constants: dict[str, np.ndarray] = {}
        self._made = {f"{name}{LAST}" for name in net.inputs}

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self._nodes.append(self._onnx.helper.make_node(kind, [*inputs], [output], **attributes))
        self._made.add(output)
        return output

    def constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = value
        return name

    def numbers(self, op: Op, what: str, values: Sequence[int]) -> str:
        return self.constant(f"{op.name} {what}", np.array(values, np.int64))

    def order(self, names: Sequence[str]) -> str:
        """The order of axes in which all these tensors exist, by default the net's."""
        return _FIRST if all(f"{name}{_FIRST}" in self._made for name in names) else LAST

    def real(self, name: str, order: str = LAST) -> str:
        """An activation or constant as reals."""
        made = f"{name}{order} real"
        if made not in self._made:
            known = quantization(self.net, name)
            place = self._integers(name, order)
            self.node("DequantizeLinear", [place, *self._scale(place, [known.scale], [known.zero_point])], made)
        return made

    def weights(self, op: Op, shaped: np.ndarray, axis: int) -> str:
        """Weights as reals in ONNX's layout. `axis`: the axis of the output channels."""
        known = self.net.tensor(op.inputs[1]).quantization
        assert known is not None
        name = self.constant(f"{op.name} weights", np.ascontiguousarray(shaped))
        return self._filter(name, known.scales, axis, np.int8)

    def biases(self, op: Op) -> str:
        """Biases as reals, with the scales of the products."""
        known, given = self.net.tensor(op.inputs[1]).quantization, self.net.constant(op, 2)
        assert known is not None
        channels = self.net.tensor(op.output).shape[-1]
        value = np.zeros(channels, np.int32) if given is None else given
        scales = np.float32(quantization(self.net, op.inputs[0]).scale) * np.asarray(known.scales, np.float32)
        return self._filter(self.constant(f"{op.name} biases", value), scales.tolist(), 0, np.int32)

    def result(self, op: Op, real: str, order: str = LAST) -> None:
        """The reals as the op's output, clamped."""
        known, clamp = quantization(self.net, op.output), getattr(op.attributes, "clamp", (_LEAST, _MOST))
        if clamp != (_LEAST, _MOST):
            ends = ((limit - known.zero_point) * known.scale for limit in clamp)
            limits = [self.constant(f"{op.name} {n}", np.array(e, np.float32)) for n, e in zip("ab", ends, strict=True)]
            real = self.node("Clip", [real, *limits], f"{op.name} clipped")
        place = f"{op.output}{order}"
        self.node("QuantizeLinear", [real, *self._scale(place, [known.scale], [known.zero_point])], place)

    def model(self) -> ModelProto:
        helper, net = self._onnx.helper, self.net
        for name in net.outputs:
            self._integers(name, LAST)
        values = [self._onnx.numpy_helper.from_array(value, name) for name, value in self._constants.items()]
        sides = ([self._end(name) for name in names] for names in (net.inputs, net.outputs))
        graph = helper.make_graph(self._nodes, "subgraph", *sides, values)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)

    def _end(self, name: str) -> Any:
        tensor = self.net.tensor(name)
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        return self._onnx.helper.make_tensor_value_info(name, kind, tensor.shape)

    def _integers(self, name: str, order: str) -> str:
        """The integers of a tensor in an order of axes."""
        place = f"{name}{order}"
        if name in self.net.constants and place not in self._constants:
            return self.constant(place, self.net.constants[name])
        if place not in self._made and name not in self.net.constants:
            other, axes = (_FIRST, TO_LAST) if order == LAST else (LAST, TO_FIRST)
            self.node("Transpose", [f"{name}{other}"], place, perm=axes)
        return place

    def _scale(self, of: str, scales: Sequence[float], zeros: Sequence[int], kind: Any = np.int8) -> list[str]:
        """Scales and zero points, scalars if there is a single one."""
        shape = () if len(scales) == 1 else (len(scales),)
        return [
            self.constant(f"{of} scale", np.array(scales, np.float32).reshape(shape)),
            self.constant(f"{of} zero", np.array(zeros, kind).reshape(shape)),
        ]

    def _filter(self, name: str, scales: Sequence[float], axis: int, kind: Any) -> str:
        places = self._scale(name, scales, [0] * len(scales), kind)
        return self.node("DequantizeLinear", [name, *places], f"{name} real", axis=axis)


# --- windows


def _convolution(graph: _Graph, op: Op) -> None:
    window, values = window_of(graph.net, op), graph.net.constants[op.inputs[1]]
    given = graph.net.tensor(op.inputs[0]).shape[-1]
    depthwise = isinstance(op.attributes, ops.DepthwiseConv2d)
    shaped = values.transpose(3, 0, 1, 2) if depthwise else values.transpose(0, 3, 1, 2)
    inputs = [graph.real(op.inputs[0], _FIRST), graph.weights(op, shaped, 0), graph.biases(op)]
    options = {"strides": window.strides, "dilations": window.dilation, "pads": window.padding}
    real = graph.node("Conv", inputs, f"{op.name} real", group=given // shaped.shape[1], **options)
    graph.result(op, real, _FIRST)


def _pool(graph: _Graph, op: Op) -> None:
    window = window_of(graph.net, op)
    kind = "MaxPool" if isinstance(op.attributes, ops.MaxPool) else "AveragePool"
    options = {"kernel_shape": window.kernel, "strides": window.strides, "pads": window.padding}
    real = graph.node(kind, [graph.real(op.inputs[0], _FIRST)], f"{op.name} real", **options)
    graph.result(op, real, _FIRST)


# --- the rest


def _dense(graph: _Graph, op: Op) -> None:
    weights = graph.weights(op, graph.net.constants[op.inputs[1]].T, 1)
    product = graph.node("MatMul", [graph.real(op.inputs[0]), weights], f"{op.name} product")
    graph.result(op, graph.node("Add", [product, graph.biases(op)], f"{op.name} real"))


def _elementwise(kind: str) -> Callable[[_Graph, Op], None]:
    def write(graph: _Graph, op: Op) -> None:
        order = graph.order(op.inputs)
        inputs = [graph.real(name, order) for name in op.inputs]
        graph.result(op, graph.node(kind, inputs, f"{op.name} real"), order)

    return write


def _simple(kind: str, options: Callable[[Any], Mapping[str, Any]] = lambda _: {}) -> Callable[[_Graph, Op], None]:
    """An op on the reals with attributes alone."""

    def write(graph: _Graph, op: Op) -> None:
        inputs = [graph.real(name) for name in op.inputs]
        graph.result(op, graph.node(kind, inputs, f"{op.name} real", **options(op.attributes)))

    return write


def _requantize(graph: _Graph, op: Op) -> None:
    graph.result(op, graph.real(op.inputs[0]))


def _reshape(graph: _Graph, op: Op) -> None:
    shape = graph.numbers(op, "shape", graph.net.tensor(op.output).shape)
    graph.result(op, graph.node("Reshape", [graph.real(op.inputs[0]), shape], f"{op.name} real"))


def _softmax(graph: _Graph, op: Op) -> None:
    real = graph.real(op.inputs[0])
    if op.of(ops.Softmax).beta != 1.0:
        beta = graph.constant(f"{op.name} beta", np.array(op.of(ops.Softmax).beta, np.float32))
        real = graph.node("Mul", [real, beta], f"{op.name} scaled")
    graph.result(op, graph.node("Softmax", [real], f"{op.name} real", axis=-1))


def _pad(graph: _Graph, op: Op) -> None:
    known, attributes = quantization(graph.net, op.inputs[0]), op.of(ops.Pad)
    amounts = graph.numbers(op, "pads", (*attributes.before, *attributes.after))
    value = np.array((attributes.value - known.zero_point) * known.scale, np.float32)
    inputs = [graph.real(op.inputs[0]), amounts, graph.constant(f"{op.name} filler", value)]
    graph.result(op, graph.node("Pad", inputs, f"{op.name} real"))


def _slice(graph: _Graph, op: Op) -> None:
    attributes = op.of(ops.Slice)
    if min(attributes.strides) < 1:
        raise NpukitError(f"{op.name}: ONNX has no form of a slice that goes backwards here")
    axes = tuple(range(len(attributes.begin)))
    parts = {"begin": attributes.begin, "end": attributes.end, "axes": axes, "strides": attributes.strides}
    inputs = [graph.real(op.inputs[0]), *(graph.numbers(op, *each) for each in parts.items())]
    graph.result(op, graph.node("Slice", inputs, f"{op.name} real"))


_FORMS: Mapping[type[ops.Attributes], Callable[[_Graph, Op], None]] = {
    ops.Add: _elementwise("Add"),
    ops.AveragePool: _pool,
    ops.Concat: _simple("Concat", lambda given: {"axis": given.axis}),
    ops.Conv2d: _convolution,
    ops.Dense: _dense,
    ops.DepthwiseConv2d: _convolution,
    ops.MaxPool: _pool,
    ops.Maximum: _elementwise("Max"),
    ops.Mean: _simple("ReduceMean", lambda given: {"axes": given.axes, "keepdims": 1}),
    ops.Minimum: _elementwise("Min"),
    ops.Multiply: _elementwise("Mul"),
    ops.Pad: _pad,
    ops.Requantize: _requantize,
    ops.Reshape: _reshape,
    ops.Slice: _slice,
    ops.Softmax: _softmax,
    ops.Subtract: _elementwise("Sub"),
    ops.Transpose: _simple("Transpose", lambda given: {"perm": given.axes}),
}
ONNX_KINDS = frozenset(kind.kind for kind in _FORMS)
"""Kinds of op with an ONNX form."""
