"""Import of ops that reduce whole axes, normalise the last axis, or concatenate tensors."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, straight
from npukit.net.importer.elementwise import requantized
from npukit.net.importer.expressions import callee, constant_value, resolve, shape_of
from npukit.net.importer.site import Site
from npukit.net.ops import ArgMax, Concat, MaxPool, Mean, Norm, Reshape
from npukit.net.ops.norm import NormConstants, norm_constants
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk


_LARGEST_WINDOW = 255
"""The largest window of a pool in accelerators: a maximum of more elements is a maximum of maxima."""


def mean(walk: Walk, site: Site) -> AxesView:
    view, axes = walk.activation(site.core.args[0]), _axes(walk, site)
    made = _mean(walk, view, axes, site.quantization)
    return walk.settled(without_axes(walk, made, axes, site.shape), site)


def total(walk: Walk, site: Site) -> AxesView:
    """Import a sum over axes: the mean with a scale divided by the number of elements has the same integers."""
    view, axes = walk.activation(site.core.args[0]), _axes(walk, site)
    shape, given = walk.assembly.shape(view.name), site.quantization
    count = prod(shape[place] for place, axis in enumerate(view.order) if axis in axes)
    made = _mean(walk, view, axes, Quantization((given.scale / count,), given.zero_points))
    summed = without_axes(walk, made, axes, site.shape)
    return walk.settled(AxesView(walk.assembly.relabelled(summed.name, given), summed.order), site)


def _axes(walk: Walk, site: Site) -> set[int]:
    """The model's axes over which a reduction runs."""
    rank, given = len(walk.activation(site.core.args[0]).order), site.core.attrs.axis
    return {int(axis) % rank for axis in given} if given is not None else set(range(rank))


def _mean(walk: Walk, view: AxesView, axes: set[int], made: Quantization) -> AxesView:
    places = tuple(place for place, axis in enumerate(view.order) if axis in axes)
    kept = _kept(walk.assembly.shape(view.name), places)
    return AxesView(walk.assembly.op(Mean(places), [view.name], kept, "int8", made), view.order)


def _kept(shape: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if place in places else size for place, size in enumerate(shape))


def largest(walk: Walk, site: Site) -> AxesView:
    """Import a maximum over axes."""
    axes = _axes(walk, site)
    found = _largest(walk, walk.activation(site.core.args[0]), axes)
    return walk.settled(without_axes(walk, found, axes, site.shape), site)


def smallest(walk: Walk, site: Site) -> AxesView:
    """Import a minimum over axes: the negative of the largest negative."""
    axes = _axes(walk, site)
    found = _largest(walk, _negative(walk, walk.activation(site.core.args[0])), axes)
    return walk.settled(without_axes(walk, _negative(walk, found), axes, site.shape), site)


def _negative(walk: Walk, view: AxesView) -> AxesView:
    """The negative numbers. Their integers are the complements: no value is lost."""
    source = walk.assembly.tensors[view.name]
    if source.quantization is None or source.dtype != "int8":
        raise NpukitError("it is a minimum of numbers beside int8")
    made = Quantization(source.quantization.scales, (-1 - source.quantization.zero_point,))
    return walk.assembly.looked_up(view, (-1 - EVERY).astype(np.int8), "int8", made)


def _largest(walk: Walk, view: AxesView, axes: set[int]) -> AxesView:
    """A maximum over axes as pools of images whose windows cover the axes, which keep size 1."""
    if walk.assembly.tensors[view.name].dtype != "int8":
        raise NpukitError("it is a maximum of numbers beside int8")
    places = [place for place, axis in enumerate(view.order) if axis in axes]
    if places != list(range(places[0], places[-1] + 1)):
        order = (*(axis for axis in view.order if axis not in axes), *sorted(axes))
        view = AxesView(walk.assembly.arranged(view, order), order)
        places = list(range(len(order) - len(axes), len(order)))
    shape = walk.assembly.shape(view.name)
    outer, inner = prod(shape[: places[0]]), prod(shape[places[-1] + 1 :])
    name, size = view.name, prod(shape[place] for place in places)
    while size > 1:
        window = next((each for each in range(min(size, _LARGEST_WINDOW), 1, -1) if size % each == 0), 0)
        if not window:
            raise NpukitError(f"it is a maximum of {size} elements at once")
        size //= window
        image = walk.assembly.derive(Reshape(), name, (1, outer * size, window, inner))
        name = walk.assembly.derive(MaxPool((1, window), (1, window)), image, (1, outer * size, 1, inner))
    return AxesView(walk.assembly.derive(Reshape(), name, _kept(shape, tuple(places))), view.order)


def without_axes(walk: Walk, view: AxesView, axes: set[int], shape: tuple[int, ...]) -> AxesView:
    """The view without axes of size 1 that the model drops."""
    if len(shape) == len(view.order):
        return view
    kept = [axis for axis in view.order if axis not in axes]
    order = tuple(sorted(kept).index(axis) for axis in kept)
    placed = tuple(shape[axis] for axis in order)
    return AxesView(walk.assembly.derive(Reshape(), view.name, placed), order)


def argmax(walk: Walk, call: Any, dtype: str) -> AxesView:
    """Import an argmax. `dtype`: type of the indices, from the cast after it if any."""
    view = walk.view(call.args[0]) or walk.activation(call.args[0])
    if call.attrs.axis is None:
        raise NpukitError("it searches all axes at once, which npukit does not compute yet")
    axis, data = int(call.attrs.axis) % len(view.order), walk.assembly.straightened(view)
    shape = walk.assembly.shape(data)
    found = walk.assembly.op(ArgMax(axis), [data], shape[:axis] + shape[axis + 1 :], dtype)
    if bool(call.attrs.keepdims):
        found = walk.assembly.derive(Reshape(), found, shape_of(call))
    return AxesView(found, straight(len(shape_of(call))))


def concat(walk: Walk, site: Site) -> AxesView:
    """Import a concatenation. All parts are requantised to the output's quantisation."""
    fields = resolve(site.core.args[0], walk.definitions).fields
    values = (walk.constant(field) or walk.activation(field) for field in fields)
    parts = [requantized(walk, value, site.quantization) for value in values]
    rank = len(site.shape)
    order = next((part.order for part in parts if isinstance(part, AxesView)), straight(rank))
    name = walk.assembly.new_name(Concat.kind)
    inputs = [
        walk.assembly.arranged(part, order)
        if isinstance(part, AxesView)
        else walk.assembly.constant(f"{name}_constant_{index}", part.value.transpose(order), part.quantization)
        for index, part in enumerate(parts)
    ]
    axis = order.index(int(site.core.attrs.axis) % rank)
    return walk.settled(walk.add(site.unclipped, Concat(axis), inputs, order, name), site)


def norm(walk: Walk, site: Site) -> AxesView:
    """Import a layer norm or RMS norm of the last axis. Other axes may have any order in memory."""
    call, rank = site.core, len(site.shape)
    view, (gains, *added) = walk.activation(call.args[0]), [_reals(walk, end) for end in call.args[1:3]]
    biases = added[0] if added else np.zeros_like(gains)
    if [int(axis) % rank for axis in call.attrs.axes] != [rank - 1]:
        raise NpukitError("it is a norm of more than the last axis")
    order = (*(axis for axis in view.order if axis != rank - 1), rank - 1)
    data, name = walk.assembly.arranged(view, order), walk.assembly.new_name(Norm.kind)
    source, epsilon = walk.assembly.scaled(data), float(call.attrs.epsilon)
    made = norm_constants(gains, biases, epsilon, source, site.quantization, centred=bool(added))
    inputs = [data, *_constants_of(walk, name, made)]
    return walk.add(site, replace(made.attributes, clamp=site.clamp), inputs, order, name)


def norm_of_groups(walk: Walk, site: Site) -> AxesView:
    """Import a norm of each group of channels, or of each channel, as a norm of rows with constants of their own."""
    call, assembly, view = site.core, walk.assembly, walk.activation(site.core.args[0])
    images, channels, *image = site.shape
    groups = int(call.attrs.num_groups) if callee(call) == "nn.group_norm" else channels
    gains, biases = (_reals(walk, end).reshape(groups, -1) for end in call.args[1:3])
    axes = [int(axis) for axis in call.attrs.axes]
    if int(call.attrs.channel_axis) != 1 or 1 in axes or prod(site.shape[axis] for axis in axes) != prod(image):
        raise NpukitError("it is a norm of groups along other axes than of an image")
    data, name = assembly.straightened(view), assembly.new_name(Norm.kind)
    source, epsilon, run = assembly.scaled(data), float(call.attrs.epsilon), prod(image)
    made = norm_constants(gains, biases, epsilon, source, site.quantization, centred=True, run=run)
    rows = (images, groups, channels // groups * run)
    inputs = [assembly.derive(Reshape(), data, rows), *_constants_of(walk, name, made)]
    clamped = replace(made.attributes, clamp=site.clamp)
    found = assembly.op(clamped, inputs, rows, "int8", site.quantization, name)
    return AxesView(assembly.derive(Reshape(), found, site.shape), straight(len(site.shape)))


def _constants_of(walk: Walk, name: str, made: NormConstants) -> list[str]:
    parts = (("multipliers", made.multipliers), ("offsets", made.offsets))
    return [walk.assembly.constant(f"{name}_{role}", values, None) for role, values in parts]


def _reals(walk: Walk, expression: Any) -> np.ndarray:
    """The real numbers of a constant, quantised or not."""
    constant = walk.constant(expression)
    real = constant_value(expression, walk.definitions) if constant is None else constant.real
    if real is None:
        raise NpukitError("its factors, or what it adds, are not constant")
    return np.ravel(real)


OPERATORS = {
    "concat": concat,
    "max": largest,
    "mean": mean,
    "min": smallest,
    **dict.fromkeys(("nn.group_norm", "nn.instance_norm"), norm_of_groups),
    "nn.layer_norm": norm,
    "nn.rms_norm": norm,
    "sum": total,
}
