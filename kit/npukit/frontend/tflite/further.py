"""Ops without a kernel in npukit: moves composed of other moves, which stay exact, and ops compiled by TVM."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import tflite
from tvm import relax, topi

from npukit.errors import NpukitError
from npukit.frontend.expressions import extremes, place
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.windows import activated
from npukit.net.limits import OPERANDS

LEAST_NORM = 1e-6
"""Smallest sum of squares in an L2 norm. TFLite replaces smaller sums by this number."""


def _reshaped(emitter: Emitter, data: relax.Expr, shape: Sequence[int]) -> relax.Var:
    return emitter.emit(operators.reshape(data, list(shape)))


def _permuted(emitter: Emitter, data: relax.Expr, axes: Sequence[int]) -> relax.Var:
    return emitter.emit(operators.permute_dims(data, list(axes)))


def depth_to_space(emitter: Emitter, op: TfliteOp) -> None:
    block, data = int(op.options["BlockSize"]), emitter.real(op.inputs[0])
    images, height, width, channels = emitter.shape(data)
    kept = channels // block**2
    _regrouped(emitter, op, (height, width, block, block, kept), (images, height * block, width * block, kept))


def space_to_depth(emitter: Emitter, op: TfliteOp) -> None:
    block, data = int(op.options["BlockSize"]), emitter.real(op.inputs[0])
    images, height, width, channels = emitter.shape(data)
    rows, columns = height // block, width // block
    _regrouped(emitter, op, (rows, block, columns, block, channels), (images, rows, columns, channels * block**2))


def _regrouped(emitter: Emitter, op: TfliteOp, apart: Sequence[int], result: Sequence[int]) -> None:
    """Splits each image into five axes, exchanges the second and third, and joins all to the result's shape."""
    split = _reshaped(emitter, emitter.real(op.inputs[0]), (result[0], *apart))
    emitter.define_real(op.outputs[0], _reshaped(emitter, _permuted(emitter, split, (0, 1, 3, 2, 4, 5)), result))


def space_to_batch(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, the block's sides, padding around the data."""
    sides, around = (emitter.integers(index) for index in op.inputs[1:])
    data, count = emitter.real(op.inputs[0]), len(sides)
    beyond = [0, 0] * (len(emitter.shape(data)) - count - 1)
    data = emitter.emit(operators.nn.pad(data, [0, 0, *around, *beyond], "constant", 0.0))
    images, *shape = emitter.shape(data)
    rest = shape[count:]
    split = [part for size, side in zip(shape, sides, strict=False) for part in (size // side, side)]
    apart = _reshaped(emitter, data, (images, *split, *rest))
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count + 1, 2)
    moved = _permuted(emitter, apart, (*inner, 0, *outer, *range(2 * count + 1, 2 * count + 1 + len(rest))))
    result = (images * prod(sides), *split[::2], *rest)
    emitter.define_real(op.outputs[0], _reshaped(emitter, moved, result))


def batch_to_space(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, the block's sides, cropping around the result."""
    sides, around = (emitter.integers(index) for index in op.inputs[1:])
    data, count = emitter.real(op.inputs[0]), len(sides)
    images, *shape = emitter.shape(data)
    spatial, rest = shape[:count], shape[count:]
    apart = _reshaped(emitter, data, (*sides, images // prod(sides), *spatial, *rest))
    pairs = [axis for place in range(count) for axis in (count + 1 + place, place)]
    moved = _permuted(emitter, apart, (count, *pairs, *range(2 * count + 1, 2 * count + 1 + len(rest))))
    full = [size * side for size, side in zip(spatial, sides, strict=True)]
    whole = _reshaped(emitter, moved, (images // prod(sides), *full, *rest))
    ends = [size - end for size, end in zip(full, around[1::2], strict=True)]
    cut = operators.strided_slice(whole, list(range(1, count + 1)), around[::2], ends)
    emitter.define_real(op.outputs[0], cut)


def tile(emitter: Emitter, op: TfliteOp) -> None:
    data = emitter.real(op.inputs[0])
    for axis, count in enumerate(emitter.integers(op.inputs[1])):
        OPERANDS.check(count, "what it repeats")
        if count < 1:
            raise NpukitError("it repeats an axis less than once")
        data = data if count == 1 else emitter.emit(operators.concat([data] * count, axis))
    emitter.define_real(op.outputs[0], data)


def unpack(emitter: Emitter, op: TfliteOp) -> None:
    data = emitter.real(op.inputs[0])
    shape = emitter.shape(data)
    axis = int(op.options["Axis"]) % len(shape)
    op.options.check_count("Num", len(op.outputs))
    if shape[axis] != len(op.outputs):
        raise NpukitError(f"it has {len(op.outputs)} outputs for an axis of {shape[axis]}")
    for number, index in enumerate(op.outputs):
        part = emitter.emit(operators.strided_slice(data, [axis], [number], [number + 1]))
        emitter.define_real(index, operators.reshape(part, [*shape[:axis], *shape[axis + 1 :]]))


def reverse(emitter: Emitter, op: TfliteOp) -> None:
    data = emitter.real(op.inputs[0])
    for axis in emitter.integers(op.inputs[1]):
        data = emitter.emit(operators.flip(data, axis % len(emitter.shape(data))))
    emitter.define_real(op.outputs[0], data)


def broadcast_to(emitter: Emitter, op: TfliteOp) -> None:
    shape = emitter.integers(op.inputs[1])
    emitter.define_real(op.outputs[0], operators.broadcast_to(emitter.real(op.inputs[0]), shape))


def mirror_pad(emitter: Emitter, op: TfliteOp) -> None:
    data, widths = emitter.real(op.inputs[0]), emitter.integers(op.inputs[1])
    before, after, reflects = widths[::2], widths[1::2], op.options["Mode"] == tflite.MirrorPadMode.REFLECT
    for size, *pair in zip(emitter.shape(data), before, after, strict=True):
        if min(pair) < 0 or max(pair) > size - reflects:
            raise NpukitError(f"it pads an axis of {size} by {pair[0]} and {pair[1]}, which is beyond its mirror image")
    mode = "REFLECT" if reflects else "SYMMETRIC"
    padded = partial(topi.nn.mirror_pad, pad_before=before, pad_after=after, mode=mode)
    emitter.define_real(op.outputs[0], emitter.loops(padded, data, "mirror_pad"))


def gather(emitter: Emitter, op: TfliteOp) -> None:
    if op.options.get("BatchDims"):
        raise NpukitError("it gathers within batches, which npukit does not read yet")
    data, indices = op.inputs
    _take(emitter, op, data, indices, int(op.options.get("Axis", 0)))


def embedding_lookup(emitter: Emitter, op: TfliteOp) -> None:
    indices, data = op.inputs
    _take(emitter, op, data, indices, 0)


def gather_nd(emitter: Emitter, op: TfliteOp) -> None:
    """The last axis of the indices holds a position along the data's first axes, clamped as in `_take`."""
    data, known = emitter.real(op.inputs[0]), emitter.known(op.inputs[1])
    shape, depth = emitter.shape(data), emitter.tensor(op.inputs[1]).shape[-1]
    sizes, rest = shape[:depth], shape[depth:]
    if known is None:
        steps = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
        given = emitter.emit(operators.astype(emitter.value(op.inputs[1]), "int32"))
        given = emitter.emit(operators.maximum(given, _integers([0])))
        given = emitter.emit(operators.minimum(given, _integers([size - 1 for size in sizes])))
        places = emitter.emit(operators.sum(emitter.emit(operators.multiply(given, _integers(steps))), [-1]))
    else:
        places = _integers(np.ravel_multi_index(tuple(np.moveaxis(known, -1, 0)), sizes, "clip"))
    flat = _reshaped(emitter, data, (prod(sizes), *rest))
    emitter.define_real(op.outputs[0], operators.take(flat, places, 0, mode="clip"))


def _integers(values: Any) -> relax.Expr:
    return relax.const(np.array(values, np.int32))


def _take(emitter: Emitter, op: TfliteOp, data: int, indices: int, axis: int) -> None:
    """Takes elements along an axis. Indices are clamped to the axis, because at run time they may come from outside."""
    known = emitter.known(indices)
    if known is not None and known.ndim == 0 and 0 <= known < emitter.shape(emitter.value(data))[axis]:
        emitter.define_real(op.outputs[0], place(emitter.builder, emitter.emit(emitter.real(data)), axis, int(known)))
        return
    taken = operators.take(emitter.real(data), emitter.value(indices), axis, mode="clip")
    emitter.define_real(op.outputs[0], taken)


def l2_normalization(emitter: Emitter, op: TfliteOp) -> None:
    data = emitter.real(op.inputs[0])
    squares = emitter.emit(operators.sum(emitter.emit(operators.square(data)), [-1], True))
    norm = emitter.emit(operators.sqrt(emitter.emit(operators.maximum(squares, relax.const(LEAST_NORM, "float32")))))
    emitter.define_real(op.outputs[0], activated(op, emitter.emit(operators.divide(data, norm))))


def cumulative_sum(emitter: Emitter, op: TfliteOp) -> None:
    axis, data = int(emitter.constant(op.inputs[1]).item()), emitter.real(op.inputs[0])
    if op.options["Reverse"] or op.options["Exclusive"]:
        raise NpukitError("it sums from the end, or all but each number itself, which npukit does not read yet")
    emitter.define_real(op.outputs[0], operators.cumsum(data, axis % len(emitter.shape(data))))


def cast(emitter: Emitter, op: TfliteOp) -> None:
    """Converts integers as stored, regardless of scales. A float loses its fraction. A float is first limited to the
    integer type's range. C does not define the conversion of others."""
    data, wanted = emitter.value(op.inputs[0]), emitter.tensor(op.outputs[0]).dtype
    given = emitter.tensor(op.inputs[0]).dtype
    if wanted == "bool":
        emitter.define(op.outputs[0], operators.not_equal(data, relax.const(0, given)))
        return
    if given == "float32" and wanted != "float32":
        low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
        highest = np.float32(high)
        highest = highest if int(highest) <= high else np.nextafter(highest, np.float32(0))
        data = emitter.emit(operators.clip(data, float(low), float(highest)))
    long = given == "float32" and wanted == "int64"
    emitter.define(op.outputs[0], _long(emitter, data) if long else operators.astype(data, wanted))


def _long(emitter: Emitter, data: relax.Expr) -> relax.Expr:
    """Floats as 64-bit integers, in parts of 32 bits, the widest conversion of the core. No step rounds."""
    total, rest = relax.const(0, "int64"), data
    for step in (1 << 32, 1 << 16, 1):
        scale = relax.const(float(step), "float32")
        part = emitter.emit(operators.astype(emitter.emit(operators.divide(rest, scale)), "int32"))
        rounded = emitter.emit(operators.multiply(emitter.emit(operators.astype(part, "float32")), scale))
        rest = emitter.emit(operators.subtract(rest, rounded))
        wide = emitter.emit(operators.astype(part, "int64"))
        total = emitter.emit(operators.add(total, emitter.emit(operators.multiply(wide, relax.const(step, "int64")))))
    return total


def top_k(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: data, count along the last axis. Outputs: the largest numbers, equal ones in order, and their indices."""
    values, places = extremes(emitter.builder, emitter.real(op.inputs[0]), emitter.integers(op.inputs[1])[0])
    emitter.define(op.outputs[1], places)
    emitter.define_real(op.outputs[0], values)
