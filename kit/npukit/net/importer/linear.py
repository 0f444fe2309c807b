"""Import of convolutions and dense layers with constant weights, their biases, and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer import elementwise
from npukit.net.importer.assembly import AxesView, Order, layout_order, straight
from npukit.net.importer.expressions import IntegerConstant, callee, constant_value, dtype_of, resolve, shape_of
from npukit.net.importer.site import Site
from npukit.net.importer.wide_weights import Depthwise, LayerOperands, in_int8, symmetric
from npukit.net.ops import (
    Add,
    Attributes,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    Matmul,
    Padding,
    Pair,
    Reshape,
    Sums,
    TransposeConv2d,
)
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk


def add_or_bias(walk: Walk, site: Site) -> AxesView:
    """Import an add: the bias of a convolution or dense layer if possible, else an elementwise add."""
    for product, bias in (site.core.args, reversed(site.core.args)):
        call = resolve(product, walk.definitions)
        if callee(call) in LINEAR and walk.operand(product) is None:
            return LINEAR[callee(call)](walk, replace(site, core=call), bias)
    return elementwise.binary(walk, site, Add)


def conv2d(walk: Walk, site: Site, bias: Any = None) -> AxesView:
    attributes = site.core.attrs
    layout = str(attributes.data_layout)
    order, data = layout_order(layout), walk.assembly.image(walk.activation(site.core.args[0]), layout)
    weights = _filters(_weights(walk, site.core.args[1]), str(attributes.kernel_layout))
    depthwise = weights.value.shape[3] == 1 and int(attributes.groups) > 1
    made = DepthwiseConv2d if depthwise else Conv2d
    kind = made(pair(attributes.strides), padding(attributes.padding), pair(attributes.dilation), site.clamp)
    if depthwise:
        weights = _ordered(weights, "OHWI", "IHWO")
    return _linear(walk, site, kind, data, weights, bias, order)


def transpose_conv2d(walk: Walk, site: Site, bias: Any = None) -> AxesView:
    attributes = site.core.attrs
    if int(attributes.groups) != 1 or any(int(step) != 1 for step in attributes.dilation):
        raise NpukitError("it has groups or dilation, which npukit does not compute in int8 yet")
    order = layout_order(str(attributes.data_layout))
    data = walk.assembly.arranged(walk.activation(site.core.args[0]), order)
    weights = _ordered(_weights(walk, site.core.args[1]), str(attributes.kernel_layout), "OHWI")
    (top, left, bottom, right), extra = padding(attributes.padding), pair(attributes.output_padding)
    kept = (top, left, bottom - extra[0], right - extra[1])
    kind = TransposeConv2d(pair(attributes.strides), kept, site.clamp)
    return _linear(walk, site, kind, data, weights, bias, order)


def matmul(walk: Walk, site: Site, bias: Any = None) -> AxesView:
    """Import a matrix product: a dense layer if the second operand is constant."""
    data, other = site.core.args
    weights = walk.constant(other) or _whole_numbers(walk, other)
    if weights is None:
        return _product(walk, site, bias)
    if weights.value.ndim != 2:
        raise NpukitError("it multiplies by a constant of more than two axes, which npukit does not compute yet")
    name = walk.assembly.straightened(walk.activation(data))
    out_by_in = _ordered(symmetric(weights), "IO", "OI")
    return _linear(walk, site, Dense(site.clamp), name, out_by_in, bias, straight(len(site.shape)))


def _whole_numbers(walk: Walk, expression: Any) -> IntegerConstant | None:
    """A float constant of small whole numbers, such as the triangle of ones of a running sum, as int8."""
    value = constant_value(expression, walk.definitions)
    if value is None or not np.array_equal(value, np.clip(np.rint(value), -127, 127)):
        return None
    return IntegerConstant(value.astype(np.int8), Quantization((1.0,), (0,)))


def _product(walk: Walk, site: Site, bias: Any) -> AxesView:
    if bias is not None:
        raise NpukitError("it adds to the product of two activations before it is quantised")
    first, second = (walk.activation(argument) for argument in site.core.args)
    names = [_matrix(walk, first, lambda size: (1, size)), _matrix(walk, second, lambda size: (size, 1))]
    names = _as_images(walk, names)
    shapes = [walk.assembly.shape(name) for name in names]
    leading = np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    output = (*leading, shapes[0][-2], shapes[1][-1])
    product = walk.assembly.op(Matmul(site.clamp), names, output, site.dtype, site.quantization)
    if output != site.shape:
        product = walk.assembly.derive(Reshape(), product, site.shape)
    return AxesView(product, straight(len(site.shape)))


def _matrix(walk: Walk, view: AxesView, vector: Callable[[int], tuple[int, int]]) -> str:
    """An operand of a product as a matrix. `vector`: function from a vector's size to its matrix shape."""
    name = walk.assembly.straightened(view)
    shape = walk.assembly.shape(name)
    return name if len(shape) > 1 else walk.assembly.derive(Reshape(), name, vector(*shape))


def _as_images(walk: Walk, names: list[str]) -> list[str]:
    """Operands with equal leading axes, reshaped to one image of matrices. PEs can then share all matrices."""
    (*leading, _, _), (*others, _, _) = map(walk.assembly.shape, names)
    if leading != others or leading[:-1] == [1] or prod(leading) == 1:
        return names
    matrices = (walk.assembly.shape(name)[-2:] for name in names)
    shapes = [(1, prod(leading), *matrix) for matrix in matrices]
    return [walk.assembly.derive(Reshape(), name, shape) for name, shape in zip(names, shapes, strict=True)]


LINEAR = {"matmul": matmul, "nn.conv1d": conv2d, "nn.conv2d": conv2d, "nn.conv2d_transpose": transpose_conv2d}
"""Operators that can absorb a bias."""

OPERATORS = {**LINEAR, "add": add_or_bias}


def in_sums(walk: Walk, call: Any) -> tuple[AxesView, Quantization] | None:
    """The int32 sums of a layer with a float result, and their quantisation. None if the operands are floats."""
    integers, weights = walk.operand(call.args[0]), walk.constant(call.args[1])
    if integers is None or weights is None or weights.value.ndim != SUMMED[callee(call)]:
        return None
    weights = symmetric(weights)
    source, view = walk.assembly.scaled(integers.name), _summed(walk, call, integers, weights)
    scales, channels = tuple(source.scale * scale for scale in weights.quantization.scales), view.order[-1]
    return view, Quantization(scales, (0,) * len(scales), channels if len(scales) > 1 else None)


def of_integers(walk: Walk, call: Any) -> AxesView | None:
    """The sums of a layer in integers. None unless the operands are an int8 tensor and a constant."""
    weights = constant_value(call.args[1], walk.definitions)
    data = _centred(walk, call.args[0])
    if data is None or weights is None or weights.ndim != SUMMED[callee(call)]:
        return None
    narrow = weights.astype(np.int8)
    held = narrow if np.array_equal(narrow, weights) else weights
    return _summed(walk, call, data, IntegerConstant(held, Quantization((1.0,), (0,))))


def _centred(walk: Walk, expression: Any) -> AxesView | None:
    """The int8 tensor behind an expression, or behind a subtraction of a constant zero point. None if there is none."""
    found, zero = resolve(expression, walk.definitions), 0
    if callee(found) == "subtract":
        moved, begin = resolve(found.args[0], walk.definitions), constant_value(found.args[1], walk.definitions)
        if callee(moved) != "astype" or begin is None or begin.size != 1:
            return None
        expression, zero = moved.args[0], int(begin.item())
    if dtype_of(expression) != "int8":
        return None
    view = walk.islands.tensor(expression, UNSCALED)
    stated = walk.assembly.quantization(view.name)
    if stated is None:
        walk.assembly.requantify(view.name, Quantization((1.0,), (zero,)))
    return view if stated is None or stated.zero_points == (zero,) else None


UNSCALED = "its integers have no constant scale, as in dynamic quantisation"
"""Reason recorded for 8-bit integers with sums but without a quantize."""


def _summed(walk: Walk, call: Any, integers: AxesView, weights: IntegerConstant) -> AxesView:
    shape = shape_of(call)
    if callee(call) == "matmul":
        order, kind = straight(len(shape)), Sums()
        data, weights = walk.assembly.arranged(integers, order), _ordered(weights, "IO", "OI")
    else:
        told, layout = call.attrs, str(call.attrs.data_layout)
        order, data = layout_order(layout), walk.assembly.image(integers, layout)
        weights = _filters(weights, str(told.kernel_layout))
        kind = Sums(0, pair(told.strides), padding(told.padding), pair(told.dilation))
    images, *rest = ordered = tuple(shape[axis] for axis in order)
    if callee(call) != "nn.conv1d":
        return AxesView(_sums(walk, kind, data, weights, ordered), order)
    line = _sums(walk, kind, data, weights, (images, 1, *rest))
    return AxesView(walk.assembly.derive(Reshape(), line, ordered), order)


SUMMED = {"matmul": 2, "nn.conv1d": 3, "nn.conv2d": 4}
"""Layers whose integer sums float ops may read, and the number of axes of their weights."""


def _sums(walk: Walk, kind: Sums, data: str, weights: IntegerConstant, shape: tuple[int, ...]) -> str:
    groups = walk.assembly.shape(data)[-1] // weights.value.shape[-1]
    data, weights = in_int8(walk, data, weights)
    held = IntegerConstant(weights.value, Quantization((1.0,), (0,)))
    name = walk.assembly.new_name(Sums.kind)
    inputs = LayerOperands(data, held, None).inputs(walk, name)
    return walk.assembly.op(replace(kind, groups=groups), inputs, shape, "int32", name=name)


def _linear(
    walk: Walk, site: Site, attributes: Attributes, data: str, weights: IntegerConstant, bias: Any, order: Order
) -> AxesView:
    biases = None if bias is None else _bias(walk, data, weights, bias)
    if isinstance(attributes, DepthwiseConv2d) and weights.value.dtype != np.int8:
        return Depthwise(walk, site, attributes, LayerOperands(data, weights, biases), order).view()
    name, layer = walk.assembly.new_name(attributes.kind), LayerOperands(*in_int8(walk, data, weights), biases)
    add = walk.add if isinstance(attributes, Dense) else walk.add_image
    return add(site, attributes, layer.inputs(walk, name), order, name)


def pair(values: Any) -> Pair:
    """A pair (down, across). One-dimensional layers get 1 for down."""
    *first, second = (int(value) for value in values)
    return first[0] if first else 1, second


def padding(values: Any) -> Padding:
    """The padding of each side. One-dimensional layers have none above and below."""
    around = [int(value) for value in values]
    top, left, bottom, right = around if len(around) == 4 else (0, around[0], 0, around[1])
    return top, left, bottom, right


def _weights(walk: Walk, expression: Any) -> IntegerConstant:
    weights = walk.constant(expression)
    if weights is None:
        raise NpukitError("its weights are not constant, or not quantised")
    return symmetric(weights)


def _filters(weights: IntegerConstant, layout: str) -> IntegerConstant:
    """Weights as OHWI. One-dimensional weights get one row."""
    if "H" in layout:
        return _ordered(weights, layout, "OHWI")
    across = _ordered(weights, layout, "OWI")
    axis = across.quantization.axis
    return IntegerConstant(across.value[:, None], replace(across.quantization, axis=axis + 1 if axis else axis))


def _ordered(weights: IntegerConstant, given: str, wanted: str) -> IntegerConstant:
    return weights.transposed([given.index(letter) for letter in wanted])


def _bias(walk: Walk, data: str, weights: IntegerConstant, expression: Any) -> np.ndarray:
    """The bias as int32 in units of input scale times weight scale."""
    units = walk.assembly.scaled(data).scale * np.array(weights.quantization.scales)
    constant = walk.constant(expression)
    if constant is None:
        real = constant_value(expression, walk.definitions)
    elif _is_in_units(constant, units):
        return np.ravel(constant.value)
    else:
        real = constant.real
    if real is None:
        raise NpukitError("its bias is not constant")
    return np.clip(np.rint(np.ravel(real) / units), -(2**31), 2**31 - 1).astype(np.int32)


def _is_in_units(bias: IntegerConstant, units: np.ndarray) -> bool:
    given = bias.quantization
    fits = bias.value.dtype == np.int32 and not any(given.zero_points)
    return fits and np.allclose(given.scales, units, rtol=1e-5)
