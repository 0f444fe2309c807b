"""Specs of elementwise ops."""

from __future__ import annotations

from typing import Any

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    Dequantize,
    Lookup,
    Maximum,
    Minimum,
    Multiply,
    Prelu,
    Quantize,
    Requantize,
    Select,
    Subtract,
)
from npukit.net.specs.fields import cuttable_but, elementwise
from npukit.net.specs.shapes import Shape, broadcast, same, together
from npukit.net.specs.spec import Example, FormatNames, OpSpec, Scales, names


def _lookup(net: Net, op: Op) -> Shape:
    table = net.tensor(op.inputs[1])
    if table.shape != (256,) or table.dtype != "int8" or table.name not in net.constants:
        raise NpukitError(f"its table is {table.dtype}{list(table.shape)}, not a constant int8[256]")
    return net.tensor(op.inputs[0]).shape


def _quantize(net: Net, op: Op) -> Shape:
    shape = net.tensor(op.inputs[0]).shape
    for name in op.inputs[1:]:
        given = net.tensor(name)
        if given.dtype != "float32" or name not in net.constants or together([shape, given.shape]) != shape:
            raise NpukitError(f"its {name} is no float32 constant for an input of shape {list(shape)}")
    return shape


def _dequantize(net: Net, op: Op) -> Shape:
    given = net.tensor(op.inputs[0])
    if given.quantization is None or len(given.quantization.scales) != 1:
        raise NpukitError(f"its input {given.name} is not quantised with one scale")
    return given.shape


def _select(net: Net, op: Op) -> Shape:
    condition, *operands = map(net.tensor, op.inputs)
    made = net.tensor(op.output)
    if condition.dtype != "bool":
        raise NpukitError(f"its condition {condition.name} is {condition.dtype}, not bool")
    if any((each.dtype, each.quantization) != (made.dtype, made.quantization) for each in operands):
        raise NpukitError("its operands and its output are not quantised alike")
    return broadcast(net, op)


CUTTABLE = cuttable_but(elementwise)
"""Function from an op to the axes along which an elementwise op can be cut."""


def _of_two(
    attributes: type[Attributes], cycles: tuple[float, float, float], called: FormatNames, **more: Any
) -> OpSpec:
    """The spec of an op with two operands. Either may be constant."""
    example = Example(f"{attributes.kind}(x, x)")
    rest = {
        "operands": (2, 2),
        "constant_first": True,
        "elementwise": True,
        "field": elementwise,
        "cuttable": CUTTABLE,
        **more,
    }
    return OpSpec(attributes, broadcast, example, core_cycles=cycles, names=called, **rest)


ELEMENTWISE = (
    _of_two(Add, (36, 0, 50), names("ADD", "Add QLinearAdd")),
    _of_two(Subtract, (46, 0, 0), names("SUB", "Sub")),
    _of_two(Multiply, (30, 0, 0), names("MUL", "Mul QLinearMul")),
    _of_two(Minimum, (11, 0, 0), names("MINIMUM", "Min"), scales=Scales.EQUAL),
    _of_two(Maximum, (11, 0, 0), names("MAXIMUM", "Max"), scales=Scales.EQUAL),
    OpSpec(
        Select,
        _select,
        Example("select(c, x, x)", "int8[1,2,2,4] scale 0.5 zero 0", more="input c: bool[1,2,2,1]"),
        operands=(3, 3),
        scales=Scales.FREE,
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        core_cycles=(9, 0, 0),
    ),
    OpSpec(
        Prelu,
        broadcast,
        Example("prelu(x, w)", constants="constant w: int8[1,1,1,4] scale 0.5 zero 0 = [1, 1, 1, 1]"),
        operands=(2, 2),
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        names=names("PRELU", "PRelu"),
        core_cycles=(29, 0, 0),
    ),
    OpSpec(
        Lookup,
        _lookup,
        Example("lookup(x, w)", constants=f"constant w: int8[256] = {list(range(-128, 128))}"),
        operands=(2, 2),
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        names=names(
            "ABS CEIL COS DIV ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG POW RELU RELU6 "
            "RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIN SQRT SQUARE TANH",
            "Abs Ceil Clip Div Elu Erf Exp Floor Gelu HardSwish LeakyRelu Log Neg QLinearLeakyRelu "
            "QLinearSigmoid Relu Round Sigmoid Softplus Sqrt Tanh",
        ),
        core_cycles=(7, 0, 0),
    ),
    OpSpec(
        Quantize,
        _quantize,
        Example(
            "quantize(x, o, s)",
            source="float32[1,2,2,4]",
            constants="constant o: float32[1] = [0.5]\nconstant s: float32[4] = [1.0, 2.0, 3.0, 4.0]",
        ),
        operands=(3, 3),
        scales=Scales.FREE,
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        core_cycles=(33, 0, 28),
    ),
    OpSpec(
        Dequantize,
        _dequantize,
        Example("dequantize(x)", "float32[1,2,2,4]"),
        scales=Scales.FREE,
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        core_cycles=(9, 0, 0),
    ),
    OpSpec(
        Requantize,
        same,
        Example("requantize(x)", "int8[1,2,2,4] scale 0.25 zero 0"),
        elementwise=True,
        field=elementwise,
        cuttable=CUTTABLE,
        names=names("QUANTIZE DEQUANTIZE", "QuantizeLinear DequantizeLinear"),
        core_cycles=(22, 0, 0),
    ),
)
