"""Import of elementwise ops on several operands, and of softmax."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, Order, straight
from npukit.net.importer.by_channel import filtered
from npukit.net.importer.expressions import IntegerConstant, callee, constant_value, resolve
from npukit.net.importer.site import Site
from npukit.net.importer.unary import FUNCTIONS, lookup, tabulated
from npukit.net.net import Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Prelu,
    Reshape,
    Select,
    Softmax,
    SquaredDifference,
    Subtract,
)
from npukit.net.ops.pairs import square_factor
from npukit.net.ops.table import SPECS
from npukit.net.tables import EVERY, SIGMOID_OUTPUT, float_table
from npukit.net.tensor import Quantization, Tensor, along

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

_IMAGE = 4
"""Number of axes of an image. Images keep a convolution's axis order; other tensors prefer a dense layer's."""
COMPARISONS = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")
_HALVINGS = 10
"""Most halvings of the smaller of two scales for a difference that keeps its sign."""
_EQUAL = 1e-5
"""Twice the largest distance of equal numbers, in steps: float32 has no exact multiples of most scales."""
Operand = AxesView | IntegerConstant


def select(walk: Walk, site: Site) -> AxesView:
    """Import a select: a lookup table if all is computed from one tensor. Otherwise both operands get the output's
    quantisation, and the condition is a separate tensor."""
    with suppress(NpukitError):
        return lookup(walk, site)
    condition, *rest = site.core.args
    operands = _alike(walk, rest, site.quantization)
    if operands is None:
        raise NpukitError("it chooses between tensors that are not quantised")
    chosen = walk.islands.tensor(condition, "it is a condition")
    return walk.settled(_together(walk, site.unclipped, Select(), (chosen, *operands)), site)


def binary(walk: Walk, site: Site, kind: type[Add | Subtract | Multiply]) -> AxesView:
    """Import a binary op: an integer op if both operands are quantised, a lookup table if only one is variable."""
    operands = [_operand(walk, argument) for argument in site.core.args]
    first, second = operands
    if first is None or second is None or not any(isinstance(operand, AxesView) for operand in operands):
        return lookup(walk, site)
    return _together(walk, site, kind(site.clamp), (first, second))


def divide(walk: Walk, site: Site) -> AxesView:
    """Import a quotient of two quantised tensors. Others become a lookup table."""
    operands = _activations(walk, site.core)
    return _together(walk, site, Divide(site.clamp), operands) if operands else lookup(walk, site)


def square(walk: Walk, site: Site) -> AxesView:
    """Import a square of the difference of two quantised tensors, in files of TFLite. Others become a lookup table."""
    inner = resolve(site.core.args[0], walk.definitions)
    operands = _activations(walk, inner) if walk.as_tflite and callee(inner) == "subtract" else None
    if operands is None:
        return lookup(walk, site)
    first, second = (walk.assembly.scaled(each.name).scale for each in operands)
    square_factor(first, second, site.quantization.scale)
    return _together(walk, site, SquaredDifference(site.clamp), operands)


def _activations(walk: Walk, call: Any) -> tuple[AxesView, AxesView] | None:
    """Both operands of a call, if both are quantised activations."""
    first, second = (walk.operand(argument) for argument in call.args)
    return (first, second) if first and second else None


def compared(walk: Walk, call: Any) -> AxesView:
    """Import a comparison of two quantised tensors: their difference, which saturates, and a table of its sign."""
    if callee(call) not in COMPARISONS:
        raise NpukitError("it is a condition on several tensors")
    given = []
    for operand in (_operand(walk, argument) for argument in call.args):
        found = walk.assembly.quantization(operand.name) if isinstance(operand, AxesView) else operand
        if operand is None or found is None:
            raise NpukitError("it compares what is not quantised")
        given.append(found.quantization if isinstance(found, IntegerConstant) else found)
    made = _of_difference(*given)
    view = binary(walk, Site(call, made, "int8"), Subtract)
    return walk.assembly.looked_up(view, FUNCTIONS[callee(call)](EVERY, 0).astype(np.int8), "bool")


def _of_difference(first: Quantization, second: Quantization) -> Quantization:
    """A quantisation in which the difference of any two numbers keeps its sign."""
    least, op, spec = min(first.scale, second.scale), Op("y", Subtract(), ("a", "b"), ("y",)), SPECS[Subtract.kind]
    real = [each.real(EVERY) for each in (first, second)]
    wanted = np.sign(np.rint((real[0][:, None] - real[1]) / (_EQUAL * least)))
    values = np.broadcast_arrays(EVERY[:, None], EVERY)
    for halvings in range(_HALVINGS):
        each = (first, second, Quantization((least / (1 << halvings),), (0,)))
        ends = {name: Tensor(name, (256,), "int8", given) for name, given in zip("aby", each, strict=True)}
        pairs = Net("pairs", ("a", "b"), ("y",), (op,), ends)
        spec.check(pairs, op)
        if np.array_equal(np.sign(spec.reference(pairs, op, values)), wanted):
            return each[-1]
    raise NpukitError("it compares numbers that are too close for int8")


def _limit(walk: Walk, site: Site, kind: type[Minimum | Maximum]) -> AxesView:
    """Import a binary op whose operands are first requantised to the output's quantisation."""
    operands = _alike(walk, site.core.args, site.quantization)
    if operands is None:
        return lookup(walk, site)
    return walk.settled(_together(walk, site.unclipped, kind(), operands), site)


def _alike(walk: Walk, arguments: Sequence[Any], wanted: Quantization) -> tuple[Operand, Operand] | None:
    """Two operands with one quantisation; None if one of them is not quantised."""
    operands = [_operand(walk, argument) for argument in arguments]
    first, second = (operand and requantized(walk, operand, wanted) for operand in operands)
    return (first, second) if first and second else None


def requantized(walk: Walk, operand: Operand, wanted: Quantization) -> Operand:
    """The operand with another quantisation. A constant is converted at once."""
    if isinstance(operand, AxesView):
        same = walk.assembly.quantization(operand.name) == wanted
        return operand if same else walk.converted(operand, wanted, "int8")
    steps = np.rint(operand.real / wanted.scale) + wanted.zero_point
    return IntegerConstant(np.clip(steps, -128, 127).astype(np.int8), wanted)


def _operand(walk: Walk, argument: Any) -> Operand | None:
    return walk.operand(argument) or walk.constant(argument)


def _together(walk: Walk, site: Site, attributes: Attributes, operands: tuple[Operand, ...]) -> AxesView:
    """Add the op with all operands in a common memory order."""
    rank, name = len(site.shape), walk.assembly.new_name(attributes.kind)
    orders = [o.order for o in operands if isinstance(o, AxesView) and len(o.order) == rank]
    order = straight(rank) if straight(rank) in orders and rank != _IMAGE else next(iter(orders), straight(rank))
    inputs = [_placed(walk, operand, order, f"{name}_constant") for operand in operands]
    return walk.add(site, attributes, inputs, order, name)


def _placed(walk: Walk, operand: Operand, order: Order, name: str) -> str:
    rank = len(order)
    if isinstance(operand, IntegerConstant):
        value = operand.value.reshape((1,) * (rank - operand.value.ndim) + operand.value.shape)
        return walk.assembly.constant(name, value.transpose(order), operand.quantization)
    if len(operand.order) < rank:
        flat = walk.assembly.straightened(operand)
        shape = walk.assembly.shape(flat)
        full = walk.assembly.derive(Reshape(), flat, (1,) * (rank - len(shape)) + shape)
        operand = AxesView(full, straight(rank))
    return walk.assembly.arranged(operand, order)


def prelu(walk: Walk, site: Site) -> AxesView:
    """Import a PReLU. Relax's slopes lie along one axis. Slopes in float make tables."""
    view, slopes = walk.activation(site.core.args[0]), walk.constant(site.core.args[1])
    axis = int(site.core.attrs.axis) % len(site.shape)
    if slopes is None:
        return _of_float_slopes(walk, site, view, axis)
    held = IntegerConstant(along(slopes.value, len(site.shape), axis), slopes.quantization)
    return walk.settled(_together(walk, site.unclipped, Prelu(), (view, held)), site)


def _of_float_slopes(walk: Walk, site: Site, view: AxesView, axis: int) -> AxesView:
    slopes, source = constant_value(site.core.args[1], walk.definitions), walk.assembly.quantization(view.name)
    if slopes is None or source is None:
        raise NpukitError("its slopes are not constant")
    if slopes.size == 1:
        table = float_table(lambda real: np.where(real < 0, real * slopes.item(), real), source, site.quantization)
        return tabulated(walk, site, view, np.clip(table, *site.clamp))
    real = source.real(EVERY).reshape(-1, *(1,) * len(site.shape))
    sloped = real * along(slopes, len(site.shape), axis)
    return filtered(walk, site, view, np.where(real < 0, sloped, real))


def softmax(walk: Walk, site: Site) -> AxesView:
    """Import a softmax. TFLite's softmax has a fixed output quantisation; another one becomes a separate op."""
    source, beta = site.core.args[0], 1.0
    call = resolve(source, walk.definitions)
    factor = constant_value(call.args[1], walk.definitions) if callee(call) == "multiply" else None
    if factor is not None and factor.size == 1:
        source, beta = call.args[0], float(factor.item())
    view = walk.activation(source)
    axis = int(site.core.attrs.axis) % len(site.shape)
    order = (*(place for place in view.order if place != axis), axis)
    inputs = [walk.assembly.arranged(view, order)]
    return walk.settled(walk.add(site.quantized(SIGMOID_OUTPUT), Softmax(beta), inputs, order), site)


OPERATORS = {
    "divide": divide,
    "maximum": partial(_limit, kind=Maximum),
    "minimum": partial(_limit, kind=Minimum),
    "multiply": partial(binary, kind=Multiply),
    "nn.prelu": prelu,
    "nn.softmax": softmax,
    "square": square,
    "subtract": partial(binary, kind=Subtract),
    "where": select,
}
