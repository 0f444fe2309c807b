"""Ops without a kernel in npukit: moves composed of other moves, which stay exact, and ops compiled by TVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import tflite
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.boxes import Suppression, non_max_suppression
from npukit.frontend.expressions import extremes, place
from npukit.frontend.fold import constant_of
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.linear import finish
from npukit.frontend.tflite.model import TfliteOp
from npukit.frontend.tflite.windows import activated, same_padding
from npukit.net.limits import OPERANDS

LEAST_NORM = 1e-6
"""Smallest length of a row in an L2 norm of TFLite."""


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
        if count > 1:
            data = _picked(emitter, data, axis, np.tile(np.arange(emitter.shape(data)[axis]), count))
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
    for axis, (size, *pair) in enumerate(zip(emitter.shape(data), before, after, strict=True)):
        if min(pair) < 0 or max(pair) > size - reflects:
            raise NpukitError(f"it pads an axis of {size} by {pair[0]} and {pair[1]}, which is beyond its mirror image")
        if any(pair):
            data = _picked(emitter, data, axis, np.pad(np.arange(size), pair, "reflect" if reflects else "symmetric"))
    emitter.define_real(op.outputs[0], data)


def _picked(emitter: Emitter, data: Any, axis: int, places: np.ndarray) -> Any:
    """The elements at constant places along an axis."""
    return emitter.emit(operators.take(data, relax.const(places.astype(np.int32)), axis, mode="fast"))


def gather(emitter: Emitter, op: TfliteOp) -> None:
    data, indices = op.inputs
    axis, batches = int(op.options.get("Axis", 0)), int(op.options.get("BatchDims", 0))
    if not batches:
        _take(emitter, op, data, indices, axis)
        return
    shape, places = emitter.shape(emitter.value(data)), emitter.shape(emitter.value(indices))
    batches, axis = batches % (len(places) + 1), axis % len(shape)
    if axis != batches or shape[:batches] != places[:batches]:
        raise NpukitError(f"it gathers along axis {axis} within {batches} axes of batches, which npukit does not read")
    _take_in_batches(emitter, op, shape, batches)


def _take_in_batches(emitter: Emitter, op: TfliteOp, shape: tuple[int, ...], axis: int) -> None:
    """Takes elements along an axis at indices of their own for each position along the axes before."""
    size, count = shape[axis], prod(shape[:axis])
    indices = emitter.emit(operators.astype(emitter.value(op.inputs[1]), "int32"))
    places = emitter.shape(indices)
    begins = np.arange(count, dtype=np.int32).reshape(*shape[:axis], *[1] * (len(places) - axis)) * np.int32(size)
    limited = emitter.emit(
        operators.minimum(emitter.emit(operators.maximum(indices, _integers(0))), _integers(size - 1))
    )
    wanted = emitter.emit(operators.add(limited, relax.const(begins)))
    flat = _reshaped(emitter, emitter.real(op.inputs[0]), (count * size, *shape[axis + 1 :]))
    emitter.define_real(op.outputs[0], operators.take(flat, wanted, 0, mode="clip"))


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
    """A row divided by its length: an RMS norm with the gain 1 / sqrt(elements)."""
    data = emitter.real(op.inputs[0])
    size = emitter.shape(data)[-1]
    gain = relax.const(np.full(size, size**-0.5, np.float32))
    made = operators.nn.rms_norm(data, gain, axes=[-1], epsilon=LEAST_NORM**2 / size)
    emitter.define_real(op.outputs[0], activated(op, emitter.emit(made)))


LONGEST_PRODUCT = 128
"""Most numbers of a running sum that is computed as a product with ones."""


def cumulative_sum(emitter: Emitter, op: TfliteOp) -> None:
    """Running sums. Short ones of real numbers are products with a triangle of ones: a dense layer."""
    axis, data = int(emitter.constant(op.inputs[1]).item()), emitter.real(op.inputs[0])
    shape, backward, exclusive = emitter.shape(data), bool(op.options["Reverse"]), bool(op.options["Exclusive"])
    axis %= len(shape)
    if emitter.tensor(op.inputs[0]).dtype in ("float32", "int8") and shape[axis] <= LONGEST_PRODUCT:
        ones = np.tri(shape[axis], k=-1 if exclusive else 0, dtype=np.float32)
        order = [*(each for each in range(len(shape)) if each != axis), axis]
        rows = _permuted(emitter, data, order)
        sums = emitter.emit(operators.matmul(rows, relax.const(np.ascontiguousarray(ones if backward else ones.T))))
        emitter.define_real(op.outputs[0], operators.permute_dims(sums, np.argsort(order).tolist()))
        return
    data = emitter.emit(operators.flip(data, axis)) if backward else data
    sums = emitter.emit(operators.cumsum(data, axis))
    sums = emitter.emit(operators.subtract(sums, data)) if exclusive else sums
    emitter.define_real(op.outputs[0], operators.flip(sums, axis) if backward else sums)


def one_hot(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: indices, depth, the value at an index, the value elsewhere."""
    depth, axis = int(emitter.constant(op.inputs[1]).item()), int(op.options.get("Axis", -1))
    indices = emitter.value(op.inputs[0])
    rank, dtype = len(emitter.shape(indices)), emitter.tensor(op.inputs[0]).dtype
    axis %= rank + 1
    OPERANDS.check(depth, "its depth")
    steps = np.arange(depth).astype(dtype).reshape([-1 if each == axis else 1 for each in range(rank + 1)])
    apart = emitter.emit(operators.expand_dims(indices, axis))
    found = emitter.emit(operators.equal(apart, constant_of(steps)))
    emitter.define_real(op.outputs[0], operators.where(found, *(emitter.real(index) for index in op.inputs[2:])))


def suppressed(emitter: Emitter, op: TfliteOp) -> None:
    """NON_MAX_SUPPRESSION_V4 and V5. Inputs: boxes, scores, most boxes, overlap, least score, [softness]. Outputs:
    indices of boxes, [scores], count. Results beyond the count are 0."""
    boxes, scores = (emitter.emit(emitter.real(index)) for index in op.inputs[:2])
    most, common, least, *soft = (emitter.constant(index).item() for index in op.inputs[2:])
    if any(soft):
        raise NpukitError("it decreases scores of overlapping boxes (soft_nms_sigma), which npukit does not read")
    (count, _), limits = emitter.shape(boxes), Suppression(int(most), common, least)
    given = _reshaped(emitter, boxes, (1, count, 4)), _reshaped(emitter, scores, (1, 1, count))
    rows = non_max_suppression(emitter.builder, *given, limits)
    places = place(emitter.builder, rows, 1, 2)
    there = emitter.emit(operators.greater_equal(places, relax.const(0, "int64")))
    places = emitter.emit(operators.astype(emitter.emit(operators.maximum(places, relax.const(0, "int64"))), "int32"))
    counted = emitter.emit(operators.astype(there, "int32"))
    emitter.define(op.outputs[0], places)
    if op.outputs[2:]:
        taken = emitter.emit(operators.take(scores, places, 0, mode="clip"))
        emitter.define_real(op.outputs[1], operators.multiply(taken, operators.astype(there, "float32")))
    emitter.define(op.outputs[-1], operators.sum(counted))


def conv_3d(emitter: Emitter, op: TfliteOp) -> None:
    """Weights are DHWIO."""
    data, weights = emitter.real(op.inputs[0]), emitter.real(op.inputs[1])
    strides, gaps = (
        tuple(int(op.options[f"{name}{axis}{last}"]) for axis in "DHW")
        for name, last in (("Stride", ""), ("Dilation", "Factor"))
    )
    if min(*strides, *gaps) < 1:
        raise NpukitError(f"its strides are {strides}, its dilations {gaps}")
    sides = emitter.shape(data)[1:4], emitter.shape(weights)[:3], strides, gaps
    totals = [0, 0, 0] if op.options["Padding"] == tflite.Padding.VALID else list(map(same_padding, *sides))
    around = [*(total // 2 for total in totals), *(total - total // 2 for total in totals)]
    layouts = {"data_layout": "NDHWC", "kernel_layout": "DHWIO"}
    finish(emitter, op, operators.nn.conv3d(data, weights, strides, around, gaps, **layouts))


def conv_3d_transpose(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: shape of the result, weights DHWOI, data, [bias]."""
    shape, (weights, data) = emitter.integers(op.inputs[0]), (emitter.real(index) for index in op.inputs[1:3])
    strides = tuple(int(op.options[f"Stride{axis}"]) for axis in "DHW")
    if min(strides) < 1 or any(int(op.options[f"Dilation{axis}Factor"]) != 1 for axis in "DHW"):
        raise NpukitError(f"its strides are {strides}, or its window has gaps")
    sides = zip(shape[1:4], emitter.shape(weights)[:3], emitter.shape(data)[1:4], strides, strict=True)
    whole = [(made, (given - 1) * stride + side) for made, side, given, stride in sides]
    planes = _permuted(emitter, data, (0, 4, 1, 2, 3)), _permuted(emitter, weights, (4, 3, 0, 1, 2))
    is_same = op.options["Padding"] == tflite.Padding.SAME
    begins = [max(full - made, 0) // 2 if is_same else 0 for made, full in whole]
    ends = [full - made - begin for (made, full), begin in zip(whole, begins, strict=True)]
    layers = emitter.emit(operators.nn.conv3d_transpose(*planes, strides))
    around = [0, 0, 0, 0, *(width for end in ends for width in (0, max(-end, 0)))]
    filled = emitter.emit(operators.nn.pad(layers, around, "constant", 0.0))
    stops = [begin + made for begin, made in zip(begins, shape[1:4], strict=True)]
    cropped = emitter.emit(operators.strided_slice(filled, [2, 3, 4], begins, stops))
    finish(
        emitter,
        replace(op, inputs=(op.inputs[2], op.inputs[1], *op.inputs[3:])),
        operators.permute_dims(cropped, [0, 2, 3, 4, 1]),
    )


def scatter(emitter: Emitter, op: TfliteOp) -> None:
    """SCATTER_ND. Inputs: indices, values, shape of the result. Values of the same index add up."""
    indices, shape = emitter.value(op.inputs[0]), emitter.integers(op.inputs[2])
    *_, depth = emitter.shape(indices)
    steps = constant_of(np.array([prod(shape[place + 1 : depth]) for place in range(depth)], np.int32))
    places = emitter.emit(operators.sum(emitter.emit(operators.multiply(indices, steps)), [-1]))
    rows = _rows_of_sums(emitter, places, emitter.value(op.inputs[1]), prod(shape[:depth]))
    emitter.define(op.outputs[0], operators.reshape(rows, shape))


def segment_sum(emitter: Emitter, op: TfliteOp) -> None:
    """Inputs: rows, the row of the result to which each is added."""
    data, places = (emitter.value(index) for index in op.inputs)
    count = int(emitter.constant(op.inputs[1]).max()) + 1
    rows = _rows_of_sums(emitter, places, data, count)
    emitter.define(op.outputs[0], operators.reshape(rows, (count, *emitter.shape(data)[1:])))


def _rows_of_sums(emitter: Emitter, places: relax.Expr, values: Any, rows: int) -> relax.Var:
    """Rows of sums of values. `places`: the row of each value, or of each row of values."""
    count, dtype = prod(emitter.shape(places)), str(values.ty.dtype)
    OPERANDS.check(rows, "its result")
    flat = _reshaped(emitter, values, (1, count, prod(emitter.shape(values)) // count))
    wanted = constant_of(np.arange(rows, dtype=np.int32).reshape(-1, 1, 1))
    there = emitter.emit(operators.equal(wanted, _reshaped(emitter, places, (1, count, 1))))
    chosen = emitter.emit(operators.where(there, flat, relax.const(0, dtype)))
    return emitter.emit(operators.sum(chosen, [1]))


def truth_of_any(emitter: Emitter, op: TfliteOp, name: str) -> None:
    """REDUCE_ANY and REDUCE_ALL. `name`: Relax's name for the limit of truths as numbers."""
    numbers = emitter.emit(operators.astype(emitter.value(op.inputs[0]), "int32"))
    axes, keep = emitter.integers(op.inputs[1]), bool(op.options.get("KeepDims"))
    limit = emitter.emit(getattr(operators, name)(numbers, axes, keep))
    emitter.define(op.outputs[0], operators.not_equal(limit, relax.const(0, "int32")))


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
