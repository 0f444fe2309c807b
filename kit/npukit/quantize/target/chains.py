"""Chains between linear layers: a result that only linear layers read, perhaps through functions of single numbers.

The constants of both ends can change with the float function as before: channels get twice the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Call, IRModule

from npukit.net.importer.expressions import callee, shape_of
from npukit.net.tensor import Quantization, along
from npukit.quantize.canonical import channel_axis_of, foldable, weight_axis
from npukit.quantize.function import changed, constant, make_call, outputs, variables
from npukit.quantize.points import Points

operators: Any = relax.op.nn
OF_CHANNELS = ("nn.max_pool2d", "nn.avg_pool2d", "mean", "nn.pad")
"""Operators computing each channel from the channel of the input."""

Constants = Mapping[Any, np.ndarray]
"""The new weights of linear ops, and the new biases, by the variable of the product or the sum."""


@dataclass(frozen=True)
class Chain:
    """`products`: the quantised results of a linear op and of depthwise ones after it, and their products. `readers`:
    the linear ops at the end. `between`: the results in the chain. Two results can take a channel's place."""

    products: Mapping[Any, Any]
    readers: tuple[Any, ...]
    between: tuple[Any, ...]

    @property
    def first(self) -> Any:
        return next(iter(self.products))


def chains(points: Points) -> Iterator[Chain]:
    """All chains of a function, in order."""
    products = {each: _product(points, each) for each in points.in_order()}
    results = {product: each for each, product in products.items() if product is not None}
    for first, product in products.items():
        if product is None:
            continue
        axis = channel_axis_of(points.values[product])
        if channels_read(points.values[product], axis) != TOGETHER:
            continue
        found = _followed(points, first, {each: made for each, made in results.items() if _keeps(points, each, axis)})
        if found is not None:
            last, between = found
            inner = {each: products[each] for each in between if products.get(each) is not None}
            read = [channels_read(points.values[each], axis) for each in last]
            changed = any(changes_channels(points.values[each], axis) for each in between)
            biased = all(points.inside(points.core(each)) is not None for each in inner)
            if all(each == TOGETHER for each in read) and biased and not changed:
                yield Chain(inner, tuple(last), tuple(between))


def _keeps(points: Points, linear: Any, axis: int) -> bool:
    """True for a depthwise convolution with a result for each channel."""
    call = points.values[linear]
    alone = channels_read(call, axis) == BY_ITSELF and shape_of(call)[axis] == shape_of(call.args[0])[axis]
    return alone and shape_of(call)[axis] > 1


TOGETHER, BY_ITSELF = "summed", "single"
"""A reader sums all channels, or computes each result from a single channel."""


def channels_read(call: Any, axis: int) -> str:
    """The way in which a linear op reads channels on the axis of its input; empty for other ways."""
    if callee(call) == "matmul":
        return TOGETHER if axis == len(shape_of(call.args[0])) - 1 else ""
    if str(call.attrs.data_layout).index("C") != axis:
        return ""
    groups = int(call.attrs.groups)
    return TOGETHER if groups == 1 else BY_ITSELF if groups == shape_of(call.args[0])[axis] else ""


def changes_channels(call: Any, axis: int, ends: int = 2) -> bool:
    """True for padding before the channels or, with both ends, behind them, and for a mean that does not keep them."""
    if callee(call) == "mean":
        rank, axes = len(shape_of(call.args[0])), call.attrs.axis
        return axes is None or not bool(call.attrs.keepdims) or axis in [int(each) % rank for each in axes]
    return callee(call) == "nn.pad" and any(map(int, call.attrs.pad_width[2 * axis : 2 * axis + ends]))


def _product(points: Points, first: Any) -> Any:
    """The linear op whose sums, with bias and activation, the variable is; else None."""
    core = points.core(first)
    inside = points.inside(core)
    product = core if inside is None else inside
    moved = any(points.moves(each) for each in _activations(points, first))
    return None if moved or product not in points.values or not foldable(points.values[product]) else product


def _activations(points: Points, first: Any) -> Iterator[Any]:
    """The activations between an op and the quantised result."""
    while not first.same_as(points.core(first)):
        yield first
        first = variables(points.values[first])[0]


def _followed(points: Points, first: Any, passed: Mapping[Any, Any]) -> tuple[list[Any], list[Any]] | None:
    """The linear readers, and all results before them; None if another op reads a result between. `passed`: results of
    linear ops that the chain goes through."""
    last, between, todo, ends = dict[Any, None](), dict[Any, None](), [first], outputs(points.module)
    while todo:
        variable = todo.pop(0)
        between[variable] = None
        if variable in ends or variable not in points.readers:
            return None
        for reader in points.readers[variable]:
            value = points.values[reader]
            if reader in passed:
                todo.append(passed[reader])
            elif foldable(value):
                last[reader] = None
            elif _by_element(points, reader) or callee(value) in OF_CHANNELS:
                todo += [] if reader in between else [reader]
            else:
                return None
    return list(last), list(between)


def _by_element(points: Points, variable: Any) -> bool:
    """True if the variable is a function of single numbers."""
    return not points.leaf(variable).same_as(variable) or not points.core(variable).same_as(variable)


def twice(points: Points, chain: Chain, steps: Mapping[Any, Quantization], known: Constants) -> Constants:
    """The constants for two results a channel, a quarter step below and a quarter step above. The mean of both
    integers has half the step. The readers' weights are halved, a quarter step above and below, for the same reason."""
    made, before = dict[Any, np.ndarray](), 0.0
    for result, product in chain.products.items():
        weights = weights_of(points, product, known)
        axis, core, step = weight_axis(points.values[product], weights.ndim), points.core(result), steps[result].scale
        bias = known.get(core, constant(points.values[core].args[1]))
        made[product] = np.repeat(weights, 2, axis)
        shifts = step / 4 - before * weights.sum(tuple(each for each in range(weights.ndim) if each != axis))
        sides = np.stack([-shifts, shifts], -1).ravel()
        doubled = np.repeat(bias, 2, int(np.argmax(bias.shape)))
        made[core], before = doubled + sides.reshape(doubled.shape), step / 4
    for reader in chain.readers:
        weights = weights_of(points, reader, known)
        axis = input_axis(points.values[reader])
        made[reader] = _halves(weights, axis, weight_axis(points.values[reader], weights.ndim))
    return made


def _halves(weights: np.ndarray, axis: int, outer: int) -> np.ndarray:
    """Two halves of each weight, which sum to the weight. Rounded, they differ by the last step if it is odd."""
    others = tuple(each for each in range(weights.ndim) if each != outer)
    quarter = np.abs(weights).max(axis=others, keepdims=True) / 2 / 127 / 4
    sides = np.tile([1.0, -1.0], weights.shape[axis])
    return np.repeat(weights / 2, 2, axis) + quarter * along(sides, weights.ndim, axis)


def with_constants(module: IRModule, made: Constants) -> tuple[IRModule, dict[Any, Any]]:
    """The function with other weights and biases, and the new variables by the old. Shapes follow."""

    def change(builder: relax.BlockBuilder, variable: Any, value: Any) -> Any:
        del builder
        if variable not in made or not isinstance(value, Call):
            return value
        return _with_weights(value, relax.const(np.ascontiguousarray(made[variable], np.float32)))

    return changed(module, change)


def _with_weights(call: Any, weights: Any) -> Any:
    """The linear op with other weights. A depthwise convolution has as many groups as weights."""
    given = call.attrs
    if callee(call) != "nn.conv2d" or int(given.groups) == 1:
        return make_call(call.op, [call.args[0], weights], given, call.ty_args)
    axis = weight_axis(call, len(shape_of(call.args[1])))
    groups = int(given.groups) * constant(weights).shape[axis] // shape_of(call.args[1])[axis]
    window, layouts = (given.strides, given.padding, given.dilation), (given.data_layout, given.kernel_layout)
    strides, padding, dilation = ([int(each) for each in numbers] for numbers in window)
    return operators.conv2d(call.args[0], weights, strides, padding, dilation, groups, *layouts, given.out_layout)


def weights_of(points: Points, linear: Any, known: Constants) -> np.ndarray:
    return known[linear] if linear in known else constant(points.values[linear].args[1])


def input_axis(call: Any) -> int:
    return 0 if callee(call) == "matmul" else str(call.attrs.kernel_layout).index("I")
