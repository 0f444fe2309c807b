"""Import of ops that move values without changing any: reshapes, transpositions, slices, pads, or no op at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, Order, straight
from npukit.net.importer.expressions import callee, dtype_of, resolve, shape_of
from npukit.net.importer.images import resize
from npukit.net.ops import Pad, Reshape, ResizeNearest, Slice

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

_PLACES = 1 << 15
"""The places that tables of a resize can hold."""
Shape = tuple[int, ...]
Movement = Callable[["Walk", AxesView, Any], AxesView]
"""Function from the input's view to the output's view."""


def reshape(walk: Walk, source: AxesView, call: Any) -> AxesView:
    shape = shape_of(call)
    order = regrouped(source.order, shape_of(moved_from(call, walk.definitions)), shape)
    if order is not None:
        placed = tuple(shape[axis] for axis in order)
        return AxesView(walk.assembly.derive(Reshape(), source.name, placed), order)
    name = walk.assembly.arranged(source, straight(len(source.order)))
    if walk.assembly.tensors[name].shape != shape:
        name = walk.assembly.derive(Reshape(), name, shape)
    return AxesView(name, straight(len(shape)))


def regrouped(order: Order, before: Shape, after: Shape) -> Order | None:
    """The memory order after a reshape that joins or splits axes adjacent in memory. None if bytes would move."""
    if order == straight(len(order)) or before == after:
        return None
    groups = _groups(before, after)
    places = {axis: place for place, axis in enumerate(order)}
    for old, _ in groups:
        if any(places[axis] + 1 != places[axis + 1] for axis in old[:-1]):
            return None
    placed = sorted(groups, key=lambda group: places[group[0][0]])
    return tuple(axis for _, new in placed for axis in new)


def _groups(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """Minimal runs of old and new axes with the same elements."""
    groups, first, second = [], 0, 0
    while first < len(before) and second < len(after):
        old, new = [first], [second]
        while prod(before[axis] for axis in old) != prod(after[axis] for axis in new):
            short = prod(before[axis] for axis in old) < prod(after[axis] for axis in new)
            (old if short else new).append((old if short else new)[-1] + 1)
        groups.append((old, new))
        first, second = old[-1] + 1, new[-1] + 1
    if groups:
        groups[-1][0].extend(range(first, len(before)))
        groups[-1][1].extend(range(second, len(after)))
    return groups


def permute(walk: Walk, source: AxesView, call: Any) -> AxesView:
    """Import a transposition as a reordered view. Bytes move only when a reader needs another order."""
    rank = len(source.order)
    given = call.attrs.axes
    axes = [int(axis) % rank for axis in given] if given is not None else list(range(rank))[::-1]
    return AxesView(source.name, tuple(axes.index(axis) for axis in source.order))


def pad(walk: Walk, source: AxesView, call: Any) -> AxesView:
    attributes = call.attrs
    if attributes.pad_mode != "constant":
        raise NpukitError(f"it pads by {attributes.pad_mode}, which npukit does not compute yet")
    widths = np.array([int(width) for width in attributes.pad_width]).reshape(-1, 2)[list(source.order)]
    before, after = (tuple(map(int, column)) for column in widths.T)
    quantization = walk.assembly.quantization(source.name)
    if quantization is None or widths.min(initial=0) < 0:
        raise NpukitError("it pads by a negative amount, or an input that is not quantised")
    value, dtype = float(attributes.pad_value), dtype_of(call)
    if dtype.startswith("float"):
        value = round(value / quantization.scale) + quantization.zero_point
    elif dtype == "uint8":
        value -= 128
    attributes = Pad(before, after, int(np.clip(value, -128, 127)))
    return _derived(walk, source, attributes, call)


def strided_slice(walk: Walk, source: AxesView, call: Any) -> AxesView:
    axes, begins, ends = ([int(value) for value in part] for part in call.args[1:4])
    steps = [int(value) for value in call.args[4]] if len(call.args) > 4 else [1] * len(axes)
    full = shape_of(call.args[0])
    ranges = [range(size) for size in full]
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        ranges[axis] = range(full[axis])[slice(begin, end, step)]
    return _sliced(walk, source, call, ranges)


def _sliced(walk: Walk, source: AxesView, call: Any, ranges: list[range]) -> AxesView:
    given = [ranges[axis] for axis in source.order]
    # The same indices in ascending order; negative steps are reversed behind the slice.
    parts = [part if part.step > 0 else range(part[-1], part[0] + 1, -part.step) for part in given]
    attributes = Slice(
        tuple(part.start for part in parts), tuple(part.stop for part in parts), tuple(part.step for part in parts)
    )
    turned = {axis for axis, part in enumerate(ranges) if part.step < 0}
    return _reversed(walk, _derived(walk, source, attributes, call), turned)


def flip(walk: Walk, source: AxesView, call: Any) -> AxesView:
    return _reversed(walk, source, {int(call.attrs.axis) % len(source.order)})


def _reversed(walk: Walk, view: AxesView, axes: set[int]) -> AxesView:
    """The view reversed along `axes`."""
    for place, axis in enumerate(view.order):
        if axis in axes:
            view = picked(walk, view, axis, np.arange(walk.assembly.tensors[view.name].shape[place])[::-1])
    return view


def picked(walk: Walk, view: AxesView, axis: int, places: np.ndarray) -> AxesView:
    """The view with the elements at `places` along an axis of the model. The axis becomes the columns of an image: a
    nearest resize takes any columns."""
    if walk.assembly.quantization(view.name) is None:
        raise NpukitError("it takes places of what is not quantised, which npukit does not compute yet")
    shape, place = walk.assembly.tensors[view.name].shape, view.order.index(axis % len(view.order))
    outer, size, inner = prod(shape[:place]), shape[place], prod(shape[place + 1 :])
    columns = np.where(places < 0, places + size, places)
    if columns.min(initial=0) < 0 or columns.max(initial=0) >= min(size, _PLACES):
        raise NpukitError(f"it takes places {columns.min()} to {columns.max()} of {size}")
    taken = ResizeNearest((0,), tuple(map(int, columns)))
    image = walk.assembly.derive(Reshape(), view.name, (outer, 1, size, inner))
    found = walk.assembly.derive(taken, image, (outer, 1, len(columns), inner))
    made = (*shape[:place], len(columns), *shape[place + 1 :])
    return AxesView(walk.assembly.derive(Reshape(), found, made), view.order)


def split_part(walk: Walk, source: AxesView, call: Any) -> AxesView:
    """Import an output of a split. The first output of a dropout is its input."""
    split = resolve(call.tuple_value, walk.definitions)
    if callee(split) == "nn.dropout" and call.index == 0:
        return source
    if callee(split) != "split":
        raise NpukitError(f"it takes a part of {callee(split) or 'a tuple'}, which npukit does not compute yet")
    full, axis = shape_of(split.args[0]), int(split.attrs.axis)
    axis %= len(full)
    sizes = [int(part.shape[axis]) for part in split.ty.fields]
    begin = sum(sizes[: call.index])
    ranges = [range(size) for size in full]
    ranges[axis] = range(begin, begin + sizes[call.index])
    return _sliced(walk, source, call, ranges)


def _derived(walk: Walk, source: AxesView, attributes: Pad | Slice, call: Any) -> AxesView:
    shape = shape_of(call)
    name = walk.assembly.derive(attributes, source.name, tuple(shape[axis] for axis in source.order))
    return AxesView(name, source.order)


RESHAPES = ("expand_dims", "flatten", "nn.batch_flatten", "reshape", "squeeze")
MOVEMENTS: Mapping[str, Movement] = {
    **dict.fromkeys(RESHAPES, reshape),
    "flip": flip,
    "image.resize2d": resize,
    "nn.pad": pad,
    "permute_dims": permute,
    "split_part": split_part,
    "strided_slice": strided_slice,
}


def moved_from(expression: Any, definitions: Mapping[Any, Any]) -> Any:
    """The expression whose values a move rearranges."""
    if callee(expression) == "split_part":
        source = resolve(expression.tuple_value, definitions)
        return source.fields[expression.index] if isinstance(source, relax.Tuple) else source.args[0]
    return expression.args[0]
