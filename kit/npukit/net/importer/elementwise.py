"""Ops that keep their input's shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npukit.errors import NpukitError
from npukit.net.importer.assembly import Order, View, straight
from npukit.net.importer.expressions import callee, constant_value, resolve
from npukit.net.importer.site import Site
from npukit.net.ops import Add, Softmax

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk


def add(walk: Walk, site: Site) -> View:
    name = walk.assembly.new_name("add")
    views = [walk.operand(argument) for argument in site.core.args]
    order = next((view.order for view in views if view), straight(len(site.shape)))
    inputs = [
        walk.assembly.arranged(view, order) if view else _constant(walk, argument, order, f"{name}_constant")
        for view, argument in zip(views, site.core.args, strict=True)
    ]
    return walk.add(site, Add(site.clamp), inputs, order, name)


def _constant(walk: Walk, argument: object, order: Order, name: str) -> str:
    constant = walk.constant(argument)
    if constant is None:
        walk.activation(argument)
        raise NpukitError("one of its operands is not quantised")
    return walk.assembly.constant(name, constant.value.transpose(order), constant.quantization)


def softmax(walk: Walk, site: Site) -> View:
    source, beta = site.core.args[0], 1.0
    call = resolve(source, walk.definitions)
    factor = constant_value(call.args[1], walk.definitions) if callee(call) == "multiply" else None
    if factor is not None and factor.size == 1:
        source, beta = call.args[0], float(factor.item())
    view = walk.activation(source)
    axis = int(site.core.attrs.axis) % len(site.shape)
    order = (*(place for place in view.order if place != axis), axis)
    return walk.add(site, Softmax(beta), [walk.assembly.arranged(view, order)], order)
