"""Ops that compute each element from the elements at the same position, with broadcasting.

Each operand has its own quantisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes, Pair
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.fields import broadcast_part, elementwise
from npukit.net.ops.kind import ENTRIES, Events, Example, OpSpec, Reference, Scales, names, used
from npukit.net.ops.shapes import Shape, broadcast
from npukit.net.requantize import (
    ADD_LEFT_SHIFT,
    WAYS,
    finished,
    product_rescaling,
    quantization,
    rescale,
    scale_ratio,
    sum_rescaling,
)


@dataclass(frozen=True)
class Add(Attributes):
    """inputs: two activations, or one and a constant."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Subtract(Attributes):
    """inputs: two activations, or one and a constant. The first minus the second."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Multiply(Attributes):
    """inputs: two activations, or one and a constant."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Divide(Attributes):
    """inputs: two activations. The first over the second: a product with a reciprocal in 32 bits, halves up. A number
    over zero is the end of the range."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class SquaredDifference(Attributes):
    """inputs: two activations. The square of the first minus the second, by TensorFlow Lite's integer algorithm."""

    clamp: Pair = (-128, 127)


@dataclass(frozen=True)
class Minimum(Attributes):
    """inputs: two activations, or one and a constant, with the output's quantisation."""


@dataclass(frozen=True)
class Maximum(Attributes):
    """inputs: two activations, or one and a constant, with the output's quantisation."""


@dataclass(frozen=True)
class Select(Attributes):
    """inputs: a condition (bool, or int8 with 0 for false), and two activations for true and false with the output's
    quantisation."""


@dataclass(frozen=True)
class Prelu(Attributes):
    """inputs: activation, int8 slopes (constant). Negative inputs are multiplied by their slope."""


@dataclass(frozen=True)
class Lookup(Attributes):
    """inputs: int8 or uint8 activation, table int8[256] from the lowest input on. Any function of one number, or with a
    table int8[channels, 256] of a number and its channel. A bool output has a table of 0 and 1."""


def _lookup(net: Net, op: Op) -> Shape:
    table = net.tensor(op.inputs[1])
    shape = net.tensor(op.inputs[0]).shape
    wanted = (256,), (*shape[-1:], 256)
    if table.shape not in wanted or table.dtype != "int8" or table.name not in net.constants:
        raise NpukitError(f"its table is {table.dtype}{list(table.shape)}, not a constant int8[256]")
    return shape


def _read_and_made(net: Net, op: Op) -> None:
    for name in (op.inputs[0], op.output):
        if net.tensor(name).dtype != "bool" and not net.tensor(name).has_one_scale:
            raise NpukitError(f"{name!r} needs one scale and one zero point")


def _select(net: Net, op: Op) -> Shape:
    condition, *operands = map(net.tensor, op.inputs)
    made = net.tensor(op.output)
    if condition.dtype not in ("bool", "int8"):
        raise NpukitError(f"its condition {condition.name} is {condition.dtype}, not bool or int8")
    if any((each.dtype, each.quantization) != (made.dtype, made.quantization) for each in operands):
        raise NpukitError("its operands and its output are not quantised alike")
    return broadcast(net, op)


def _sum(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The sum, or the difference, of two operands."""
    factors = sum_rescaling(net, op)
    first, second = (
        rescale(centred(net, op, operands, index) << ADD_LEFT_SHIFT, factor)
        for index, factor in enumerate((factors.first, factors.second))
    )
    total = first + second if isinstance(op.attributes, Add) else first - second
    return finished(net, op, rescale(total, factors.output))


def multiply(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    product = centred(net, op, operands, 0) * centred(net, op, operands, 1)
    return finished(net, op, rescale(product, product_rescaling(net, op)))


def _by(function: Callable[..., np.ndarray]) -> Reference:
    """The reference that applies a function to the operands in a common shape."""
    return lambda net, op, operands: function(*aligned(net, op, operands))


def prelu(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    data, slopes = centred(net, op, operands, 0), centred(net, op, operands, 1)
    negative = rescale(data * slopes, product_rescaling(net, op))
    return finished(net, op, np.where(data >= 0, rescale(data, scale_ratio(net, op)), negative))


def lookup(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    data, table = operands
    places = data.astype(np.int64) - np.iinfo(data.dtype).min
    found = table[places] if table.ndim == 1 else table[np.arange(len(table)), places]
    return found.astype(net.tensor(op.output).dtype)


def _tables(net: Net, op: Op, name: str, output: Box) -> Box:
    """The tables of the channels of a box."""
    shape = net.tensor(name).shape
    return Box.whole(shape) if len(shape) == 1 else Box((output.start[-1], 0), (output.stop[-1], shape[-1]))


def aligned(net: Net, op: Op, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Operands that broadcast to the output: axes of size 1 inserted after the case axis, up to the output's rank."""
    rank = len(net.tensor(op.output).shape)
    return [
        value if name in net.constants else value.reshape(len(value), *(1,) * (rank + 1 - value.ndim), *value.shape[1:])
        for name, value in zip(op.inputs, operands, strict=True)
    ]


def centred(net: Net, op: Op, operands: Sequence[np.ndarray], index: int) -> np.ndarray:
    """An operand minus its zero point."""
    value = aligned(net, op, operands)[index]
    return value.astype(np.int64) - quantization(net, op.inputs[index]).zero_point


def _scales_are_close(net: Net, op: Op) -> None:
    if sum_rescaling(net, op).output.shift > 0:
        scales = [quantization(net, name).scale for name in (*op.inputs, op.output)]
        told = ", ".join(f"{scale:g}" for scale in scales)
        raise NpukitError(f"its scales {told} are too far apart to add", tries=WAYS)


def _events_of_lookup(net: Net, op: Op, operands: Sequence[np.ndarray], result: np.ndarray) -> Events:
    data, table = operands
    if table.ndim == 1:
        yield ENTRIES, used(data.astype(np.int64) - np.iinfo(data.dtype).min, len(table))


def of_elements(
    attributes: type[Attributes], shape: Callable[[Net, Op], Shape], reference: Reference, example: Example, **more: Any
) -> OpSpec:
    """The spec of an elementwise op."""
    usual = {"elementwise": True, "field": elementwise, "operand": broadcast_part}
    return OpSpec(attributes, shape, reference, example, **(usual | more))


def of_two(kind: type[Attributes], reference: Reference, **more: Any) -> OpSpec:
    """The spec of an op with two operands. Either may be constant."""
    example = Example(f"{kind.kind}(x, x)")
    return of_elements(kind, broadcast, reference, example, operands=(2, 2), constant_first=True, **more)


OPS = (
    of_two(
        Add,
        _sum,
        check=_scales_are_close,
        names=names("ADD", "Add BatchNormalization Mean QLinearAdd Sum"),
        core_cycles=(36, 0, 50),
    ),
    of_two(Subtract, _sum, check=_scales_are_close, names=names("SUB", "Sub"), core_cycles=(42, 0, 0)),
    of_two(
        Multiply,
        multiply,
        names=names("MUL", "BatchNormalization Mul QLinearMul RotaryEmbedding SwiGLU"),
        core_cycles=(30, 0, 0),
    ),
    of_two(Minimum, _by(np.minimum), scales=Scales.EQUAL, names=names("MINIMUM", "Min"), core_cycles=(11, 0, 0)),
    of_two(Maximum, _by(np.maximum), scales=Scales.EQUAL, names=names("MAXIMUM", "Max"), core_cycles=(11, 0, 0)),
    of_elements(
        Select,
        _select,
        _by(np.where),
        Example("select(c, x, x)", "int8[1,2,2,4] scale 0.5 zero 0", more="input c: bool[1,2,2,1]"),
        operands=(3, 3),
        scales=Scales.FREE,
        core_cycles=(9, 0, 0),
    ),
    of_elements(
        Prelu,
        broadcast,
        prelu,
        Example("prelu(x, w)", constants="constant w: int8[1,1,1,4] scale 0.5 zero 0 = [1, 1, 1, 1]"),
        operands=(2, 2),
        names=names("PRELU", "PRelu"),
        core_cycles=(29, 0, 0),
    ),
    of_elements(
        Lookup,
        _lookup,
        lookup,
        Example("lookup(x, w)", constants=f"constant w: int8[256] = {list(range(-128, 128))}"),
        operands=(2, 2),
        names=names(
            "ABS CEIL COMPLEX_ABS COS ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG POW RELU RELU6 "
            "RELU_0_TO_1 RELU_N1_TO_1 ROUND RSQRT SIN SQRT SQUARE TANH",
            "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid "
            "HardSwish IsInf IsNaN LeakyRelu Log Mish Neg QLinearLeakyRelu QLinearSigmoid Reciprocal Relu Round Selu "
            "Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu",
        ),
        scales=Scales.FREE,
        check=_read_and_made,
        core_cycles=(7, 0, 0),
        operand=_tables,
        by_channel=True,
        events=_events_of_lookup,
    ),
)
