"""Average and maximum pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npukit.errors import NpukitError
from npukit.net.importer.assembly import View
from npukit.net.importer.linear import layout_order, padding, pair
from npukit.net.importer.site import Site
from npukit.net.ops import AveragePool, MaxPool

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk


def average_pool(walk: Walk, site: Site) -> View:
    if bool(site.core.attrs.count_include_pad) and any(site.core.attrs.padding):
        raise NpukitError("it averages over its padding, which npukit does not compute in int8 yet")
    return _pool(walk, site, AveragePool)


def max_pool(walk: Walk, site: Site) -> View:
    return _pool(walk, site, MaxPool)


def _pool(walk: Walk, site: Site, kind: type[AveragePool] | type[MaxPool]) -> View:
    attributes = site.core.attrs
    order = layout_order(str(attributes.layout))
    view = walk.activation(site.core.args[0])
    if walk.assembly.quantization(view.name) != site.quantization:
        view = walk.converted(view, site.quantization, "int8")
    data = walk.assembly.arranged(view, order)
    window, strides = pair(attributes.pool_size), pair(attributes.strides)
    return walk.add(site, kind(window, strides, padding(attributes.padding), site.clamp), [data], order)
