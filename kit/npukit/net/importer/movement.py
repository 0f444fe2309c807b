"""Ops that move values and change none, on whatever type: they become a reshape, a transpose, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from npukit.net.importer.assembly import View, straight
from npukit.net.importer.expressions import shape_of
from npukit.net.ops import Reshape

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

Movement = Callable[["Walk", View, Any], View]
"""From the view of the op's input to the view of its output."""


def reshape(walk: Walk, source: View, call: Any) -> View:
    shape = shape_of(call)
    name = walk.assembly.arranged(source, straight(len(source.order)))
    if walk.assembly.tensors[name].shape != shape:
        name = walk.assembly.derive(Reshape(), name, shape)
    return View(name, straight(len(shape)))


def permute(walk: Walk, source: View, call: Any) -> View:
    """Nothing moves until somebody needs the axes in another order."""
    rank = len(source.order)
    given = call.attrs.axes
    axes = [int(axis) % rank for axis in given] if given is not None else list(range(rank))[::-1]
    return View(source.name, tuple(axes.index(axis) for axis in source.order))


MOVEMENTS: Mapping[str, Movement] = {
    "expand_dims": reshape,
    "flatten": reshape,
    "permute_dims": permute,
    "reshape": reshape,
    "squeeze": reshape,
}
