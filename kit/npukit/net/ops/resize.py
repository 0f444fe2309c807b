"""Images resized to rows and columns of their own, or blended between those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.net.attributes import Attributes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.fields import AxisRule, InputRule, box_needed
from npukit.net.ops.kind import Constant, Example, OpSpec, Reference, Scales, names
from npukit.net.ops.shapes import Shape, images
from npukit.net.places import PLACE_UNIT
from npukit.net.tensor import along


@dataclass(frozen=True)
class ResizeNearest(Attributes):
    """Output row y is input row rows[y]. `columns` likewise."""

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResizeBilinear(Attributes):
    """Output row y lies between two input rows: (low, high, distance from low in 1/1024). `columns` likewise."""

    rows: tuple[tuple[int, int, int], ...] = ()
    columns: tuple[tuple[int, int, int], ...] = ()


def _resize(net: Net, op: Op) -> Shape:
    attributes, shape = op.of(ResizeNearest, ResizeBilinear), images(net, op)
    for places, size in zip((attributes.rows, attributes.columns), shape[1:3], strict=True):
        used = [place for entry in places for place in _used(entry)]
        if not used or not all(0 <= place < size for place in used):
            raise NpukitError(f"it takes rows or columns that an input of shape {list(shape)} has not")
    return shape[0], len(attributes.rows), len(attributes.columns), shape[3]


def _field_of_resize(net: Net, op: Op) -> list[InputRule]:
    attributes = op.of(ResizeNearest, ResizeBilinear)
    rows, columns = (
        AxisRule(axis, places=tuple((min(used), max(used) + 1) for used in map(_used, places)))
        for axis, places in ((1, attributes.rows), (2, attributes.columns))
    )
    return [(AxisRule(0), rows, columns, AxisRule(3))]


def _used(entry: int | tuple[int, int, int]) -> tuple[int, ...]:
    """The input positions of a resized position."""
    return (entry,) if isinstance(entry, int) else entry[:2]


def resize_nearest(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.of(ResizeNearest)
    return operands[0][:, :, list(attributes.rows)][:, :, :, list(attributes.columns)]


def resize_bilinear(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    attributes = op.of(ResizeBilinear)
    tall = _blended(operands[0].astype(np.int64), attributes.rows, axis=2)
    total = _blended(tall, attributes.columns, axis=3)
    half = PLACE_UNIT * PLACE_UNIT // 2
    rounded = np.sign(total) * ((np.abs(total) + half) // (PLACE_UNIT * PLACE_UNIT))
    return rounded.astype(operands[0].dtype)


def _blended(data: np.ndarray, places: tuple[tuple[int, int, int], ...], axis: int) -> np.ndarray:
    """Interpolated values along an axis, times 1024."""
    low, high, step = (np.array(part) for part in zip(*places, strict=True))
    steps = along(step, data.ndim, axis)
    return data.take(low, axis) * (PLACE_UNIT - steps) + data.take(high, axis) * steps


def _constants(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    """The rows and columns of the input for each row and column of the output."""
    attributes = op.of(ResizeNearest, ResizeBilinear)
    what = "which it is made of" if isinstance(attributes, ResizeNearest) else "(low, high, 1024ths from low)"
    held = box_needed(_field_of_resize(net, op)[0], output, net.tensor(op.inputs[0]).shape)
    for axis, name, places in ((1, "rows", attributes.rows), (2, "columns", attributes.columns)):
        chosen = np.array(places[output.start[axis] : output.stop[axis]], np.int16)
        chosen.reshape(len(chosen), -1)[:, :2] -= held.start[axis]
        yield name, chosen, f"for each of the output's, the input's {what}"


def _of_resize(
    kind: type[ResizeNearest | ResizeBilinear], reference: Reference, places: str, tflite: str, **more: Any
) -> OpSpec:
    return OpSpec(
        kind,
        _resize,
        reference,
        Example(f"{kind.kind}(x) rows={places} columns={places}"),
        scales=Scales.EQUAL_OR_NONE,
        field=_field_of_resize,
        names=names(tflite, "Resize Upsample"),
        constants=_constants,
        **more,
    )


OPS = (
    _of_resize(ResizeBilinear, resize_bilinear, "[[0, 1, 0], [1, 1, 0]]", "RESIZE_BILINEAR", core_cycles=(19, 0, 36)),
    _of_resize(ResizeNearest, resize_nearest, "[0, 1]", "RESIZE_NEAREST_NEIGHBOR REVERSE_V2", core_cycles=(6, 0, 0)),
)
