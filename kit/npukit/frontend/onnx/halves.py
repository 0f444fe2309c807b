"""16-bit activations of ONNX: layers with 8-bit weights compute the upper and the lower bytes as two 8-bit layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from tvm import relax, te

from npukit.frontend.expressions import dequantize
from npukit.frontend.fold import FoldingBuilder, value_of
from npukit.frontend.onnx.node import padded
from npukit.net.importer.expressions import callee, dtype_of
from npukit.net.tensor import Quantization

operators: Any = relax.op

BITS, LOW, SIGN = 8, 255, 128
"""Bits of a byte, its largest number, and its decrease as a signed number."""
SIGN_OF_16 = 1 << 15
"""The decrease of a 16-bit number as a signed number."""
ENDS = ("DequantizeLinear", "QuantizeLinear")


def in_halves(usual: Callable[..., Any], bb: FoldingBuilder, inputs: Any, attr: Any, params: Any) -> Any:
    """A layer; on 16-bit data and 8-bit weights the sum of the layers on either byte."""
    data, weights, bias = padded(inputs, 3)
    halves = _halves(bb, data) if _is_of_bytes(bb, weights, attr.get("group", 1)) else []
    if not halves:
        return usual(bb, inputs, attr, params)
    upper, lower = halves
    parts = usual(bb, [upper, weights, None], attr, params), usual(bb, [lower, weights, bias], attr, params)
    return operators.add(*map(bb.emit, parts))


def _bound(bb: FoldingBuilder, value: Any) -> Any:
    return bb.lookup_binding(value) if isinstance(value, relax.Var) else value


def _is_of_bytes(bb: FoldingBuilder, weights: Any, groups: int) -> bool:
    """True for constant weights of 8 bits. In groups their distance from the zero point has 8 bits too."""
    call: Any = _bound(bb, weights)
    held = value_of(call.args[0]) if callee(call) == "dequantize" else None
    zeros = None if held is None else value_of(call.args[2])
    if held is None or zeros is None or held.dtype.itemsize != 1:
        return False
    far = (held.min() - zeros.max().astype(int), held.max() - zeros.min().astype(int))
    return groups == 1 or (far[0] >= -SIGN and far[1] < SIGN)


def _halves(bb: FoldingBuilder, data: Any) -> list[Any]:
    """The real parts of the upper and of the lower bytes of dequantised 16-bit numbers. Their sum is the data. Empty
    for other data."""
    call: Any = _bound(bb, data)
    if callee(call) != "dequantize" or dtype_of(call.args[0]) != "int16" or value_of(call.args[0]) is not None:
        return []
    scale, zero = (value_of(each) for each in call.args[1:])
    if scale is None or zero is None or scale.size != 1:
        return []
    if data not in bb.halves:
        step, begin, integers = float(scale.item()), int(zero.item()), call.args[0]
        upper = _byte(bb, integers, lambda value: value >> BITS, "upper_bytes")
        lower = _byte(bb, integers, lambda value: (value & LOW) - SIGN, "lower_bytes")
        high = Quantization((step * (LOW + 1),), (begin >> BITS,))
        low = Quantization((step,), ((begin & LOW) - SIGN,))
        bb.halves[data] = [bb.emit(dequantize(*each, "int8")) for each in ((upper, high), (lower, low))]
    return bb.halves[data]


def _byte(bb: FoldingBuilder, integers: Any, function: Callable[[Any], Any], name: str) -> Any:
    def loops(data: Any) -> Any:
        return te.compute(data.shape, lambda *place: function(data(*place).astype("int32")).astype("int8"))

    return bb.emit_te(loops, integers, primfunc_name_hint=name)


def signed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with int16 instead of uint16 between quantise and dequantise; unchanged for uint16 elsewhere."""
    zeros = {each.name for each in model.graph.initializer if each.data_type == TensorProto.UINT16}
    quantising = [node for node in model.graph.node if node.op_type == ENDS[1] and zeros & set(node.input)]
    made = {name for node in quantising for name in node.output}
    if not zeros or not _only_between(model, zeros, made):
        return model
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        if tensor.name in zeros:
            moved = numpy_helper.to_array(tensor).astype(np.int32) - SIGN_OF_16
            tensor.CopyFrom(numpy_helper.from_array(moved.astype(np.int16), tensor.name))
    for attribute in (each for node in changed.graph.node for each in node.attribute):
        if attribute.name == "output_dtype" and attribute.i == TensorProto.UINT16:
            attribute.i = TensorProto.INT16
    for value in changed.graph.value_info:
        if value.name in made and value.type.tensor_type.elem_type == TensorProto.UINT16:
            value.type.tensor_type.elem_type = TensorProto.INT16
    return changed


def _only_between(model: onnx.ModelProto, zeros: set[str], made: set[str]) -> bool:
    """True if uint16 numbers are zero points, or are dequantised after they were quantised or stored."""
    outputs = {value.name for value in model.graph.output}
    for node in model.graph.node:
        taken = [place for place, name in enumerate(node.input) if name in zeros | made]
        if taken and (node.op_type not in ENDS or (node.op_type == ENDS[0] and not _is_whole(node, zeros, made))):
            return False
    return not outputs & made


def _is_whole(node: onnx.NodeProto, zeros: set[str], made: set[str]) -> bool:
    """True if a dequantise reads 16-bit numbers and their zero point, both to be changed."""
    return len(node.input) > 2 and node.input[0] in zeros | made and node.input[2] in zeros
