"""Import of pools, and of image resizing."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, Order, layout_order
from npukit.net.importer.expressions import shape_of
from npukit.net.importer.linear import padding, pair
from npukit.net.importer.site import Site
from npukit.net.ops import AveragePool, DepthwiseConv2d, MaxPool, Padding, Pair, ResizeBilinear, ResizeNearest
from npukit.net.places import linear, nearest
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk


def average_pool(walk: Walk, site: Site) -> AxesView:
    if bool(site.core.attrs.count_include_pad) and any(site.core.attrs.padding):
        raise NpukitError("it averages over its padding, which npukit does not compute in int8 yet")
    _refuse_gaps(site)
    return _pool(walk, site, walk.activation(site.core.args[0]), AveragePool)


def max_pool(walk: Walk, site: Site) -> AxesView:
    """Import a max pool. Real numbers before the pool are quantised before the pool: the largest stays the largest."""
    source = site.core.args[0]
    _refuse_gaps(site)
    return _pool(walk, site, walk.operand(source) or walk.computed(replace(site, core=source)), MaxPool)


def _refuse_gaps(site: Site) -> None:
    if any(int(step) != 1 for step in site.core.attrs.dilation):
        raise NpukitError("its window has gaps (dilation), which npukit does not compute in int8 yet")


def _pool(walk: Walk, site: Site, view: AxesView, kind: type[AveragePool] | type[MaxPool]) -> AxesView:
    """Import a pool with its input's quantisation. Another output quantisation becomes a separate op. An average of
    whole windows is then a filter, which rounds once."""
    attributes = site.core.attrs
    layout = str(attributes.layout)
    order, data = layout_order(layout), walk.assembly.image(view, layout)
    tensor = walk.assembly.tensors[data]
    assert tensor.quantization is not None
    inner = site if tensor.quantization == site.quantization else site.quantized(tensor.quantization)
    window, strides = pair(attributes.pool_size), pair(attributes.strides)
    pads = _filled(tensor.shape[1:3], order, site, window, strides, padding(attributes.padding))
    if kind is AveragePool and inner is not site and tensor.dtype == site.dtype == "int8" and not any(pads):
        filters = _mean_filter(walk, window, tensor.shape[-1])
        return walk.add_image(site, DepthwiseConv2d(strides, clamp=site.clamp), [data, filters], order)
    pooled = walk.add_image(inner, kind(window, strides, pads, inner.clamp), [data], order)
    return pooled if inner is site else walk.settled(pooled, site)


def _mean_filter(walk: Walk, window: Pair, channels: int) -> str:
    """The weights of a mean: ones, with the share of an element as scale."""
    ones = np.ones((1, *window, channels), np.int8)
    return walk.assembly.constant(walk.assembly.new_name("mean_weights"), ones, Quantization((1 / prod(window),), (0,)))


def _filled(size: tuple[int, ...], order: Order, site: Site, window: Pair, strides: Pair, given: Padding) -> Padding:
    """The padding, extended at the end to cover the last windows. Sizes that round up need more padding than stated."""
    made = ([1] if len(order) == 3 else []) + [site.shape[axis] for axis in order[1:-1]]
    ends = [(made[axis] - 1) * strides[axis] + window[axis] - size[axis] - given[axis] for axis in (0, 1)]
    return given[0], given[1], max(given[2], ends[0]), max(given[3], ends[1])


def resize(walk: Walk, source: AxesView, call: Any) -> AxesView:
    attributes, order = call.attrs, layout_order(str(call.attrs.layout))
    data = walk.assembly.arranged(source, order)
    before, full = walk.assembly.tensors[data].shape, shape_of(call)
    after = tuple(full[axis] for axis in order)
    mode, method = str(attributes.coordinate_transformation_mode), str(attributes.method)
    if method == "nearest_neighbor":
        rounding = str(attributes.rounding_method) or "round"
        kind = ResizeNearest(*(nearest(before[axis], after[axis], mode, rounding) for axis in (1, 2)))
    elif method == "linear":
        kind = ResizeBilinear(*(linear(before[axis], after[axis], mode) for axis in (1, 2)))
    else:
        raise NpukitError(f"it resizes by {method}, which npukit does not compute yet")
    return AxesView(walk.assembly.derive(kind, data, after), order)


OPERATORS = {
    **dict.fromkeys(("nn.avg_pool1d", "nn.avg_pool2d"), average_pool),
    **dict.fromkeys(("nn.max_pool1d", "nn.max_pool2d"), max_pool),
}
