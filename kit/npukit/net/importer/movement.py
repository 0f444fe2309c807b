"""Import of ops that move values without changing any: reshapes, transpositions, slices, pads, or no op at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, Order, straight
from npukit.net.importer.expressions import axes_of, callee, dtype_of, resolve, shape_of, split_span
from npukit.net.importer.images import resize
from npukit.net.importer.site import Site
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
    name = walk.assembly.straightened(source)
    if walk.assembly.shape(name) != shape:
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
    axes = axes_of(call)
    return AxesView(source.name, tuple(axes.index(axis) for axis in source.order))


def padded(walk: Walk, site: Site) -> AxesView | None:
    """A padding by a number beyond the data's range, as of the result. None for another site."""
    if callee(site.core) != "nn.pad":
        return None
    view, value = walk.activation(site.core.args[0]), float(site.core.attrs.pad_value)
    given = walk.assembly.scaled(view.name)
    steps = value / given.scale + given.zero_point
    return pad(walk, view if -129 < steps < 128 else walk.converted(view, site.quantization, "int8"), site.core)


MIRRORS = {"circular": "wrap", "reflect": "reflect", "replicate": "edge"}
"""Relax's modes of padding by the data's own values, with numpy's names."""


def pad(walk: Walk, source: AxesView, call: Any) -> AxesView:
    attributes = call.attrs
    widths = np.array([int(width) for width in attributes.pad_width]).reshape(-1, 2)[list(source.order)]
    if (mode := str(attributes.pad_mode)) != "constant":
        return _mirrored(walk, source, widths, MIRRORS[mode])
    before, after = (tuple(map(int, column)) for column in widths.T)
    quantization = walk.assembly.quantization(source.name)
    if quantization is None or widths.min(initial=0) < 0:
        raise NpukitError("it pads by a negative amount, or an input that is not quantised")
    value, dtype = float(attributes.pad_value), dtype_of(call)
    if dtype.startswith("float"):
        value = np.rint(value / quantization.scale) + quantization.zero_point
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
    turned = [place for place, part in enumerate(given) if part.step < 0]
    return _reversed(walk, _derived(walk, source, attributes, call), turned)


def flip(walk: Walk, source: AxesView, call: Any) -> AxesView:
    return _reversed(walk, source, [source.order.index(int(call.attrs.axis) % len(source.order))])


def _reversed(walk: Walk, view: AxesView, places: Sequence[int]) -> AxesView:
    shape = walk.assembly.shape(view.name)
    return _chosen(walk, view, {place: range(shape[place])[::-1] for place in places})


def _mirrored(walk: Walk, view: AxesView, widths: np.ndarray, mode: Any) -> AxesView:
    """The view padded by its own values."""
    sizes = enumerate(zip(walk.assembly.shape(view.name), widths, strict=True))
    return _chosen(
        walk, view, {place: np.pad(range(size), width, mode) for place, (size, width) in sizes if any(width)}
    )


def _chosen(walk: Walk, view: AxesView, indices: Mapping[int, Iterable[int]]) -> AxesView:
    """The view with some indices of some axes in memory. One or two adjacent axes become the rows and columns of an
    image that a nearest resize chooses from."""
    if indices and walk.assembly.quantization(view.name) is None:
        raise NpukitError("it chooses from integers that are not quantised")
    rest = {place: tuple(map(int, chosen)) for place, chosen in indices.items()}
    if any(index >= _PLACES for chosen in rest.values() for index in chosen):
        raise NpukitError(f"it chooses from more than {_PLACES:,} numbers of an axis")
    while rest:
        shape, place = walk.assembly.shape(view.name), min(rest)
        rows, columns = rest.pop(place), rest.pop(place + 1, None)
        sizes, chosen = (shape[place : place + 2], (rows, columns)) if columns else ((1, shape[place]), ((0,), rows))
        end = place + 1 + bool(columns)
        image, made = ((prod(shape[:place]), *each, prod(shape[end:])) for each in (sizes, map(len, chosen)))
        taken = walk.assembly.derive(ResizeNearest(*chosen), walk.assembly.derive(Reshape(), view.name, image), made)
        after = (*shape[:place], *map(len, chosen[-(end - place) :]), *shape[end:])
        view = AxesView(walk.assembly.derive(Reshape(), taken, after), view.order)
    return view


def picked(walk: Walk, view: AxesView, axis: int, places: np.ndarray) -> AxesView:
    """The view with the elements at `places` along an axis of the model."""
    place = view.order.index(axis % len(view.order))
    size = walk.assembly.shape(view.name)[place]
    chosen = np.where(places < 0, places + size, places)
    if chosen.min(initial=0) < 0 or chosen.max(initial=0) >= size:
        raise NpukitError(f"it takes places {chosen.min()} to {chosen.max()} of {size}")
    return _chosen(walk, view, {place: chosen})


def split_part(walk: Walk, source: AxesView, call: Any) -> AxesView:
    """Import an output of a split. The first output of a dropout is its input."""
    split = resolve(call.tuple_value, walk.definitions)
    if callee(split) == "nn.dropout" and call.index == 0:
        return source
    if callee(split) != "split":
        raise NpukitError(f"it takes a part of {callee(split) or 'a tuple'}, which npukit does not compute yet")
    axis, *span = split_span(split, call.index)
    ranges = [range(size) for size in shape_of(split.args[0])]
    ranges[axis] = range(*span)
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
