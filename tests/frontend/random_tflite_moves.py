"""Random ops of TFLite that move int8 values or find the largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tflite

from frontend.tflite_bundle import Bundle, Shape, some_image, some_shape


def moved(
    bundle: Bundle, code: str, shape: Shape, result: Shape, constants: Sequence[np.ndarray], **options: Any
) -> None:
    given, table = bundle.quantized(), options.pop("table", "")
    names = [bundle.constant(value) for value in constants]
    bundle.op(code, [bundle.input(shape, given), *names], bundle.output(result, given), table, **options)


def pad(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    widths = np.array([bundle.sizes(0, 2, 2) for _ in shape], np.int32)
    result = tuple(size + int(total) for size, total in zip(shape, widths.sum(axis=1), strict=True))
    moved(bundle, "PAD", shape, result, [widths], table="Pad")


def pad_v2(bundle: Bundle) -> None:
    shape, given = some_shape(bundle), bundle.quantized()
    widths = np.array([bundle.sizes(0, 2, 2) for _ in shape], np.int32)
    result = tuple(size + int(total) for size, total in zip(shape, widths.sum(axis=1), strict=True))
    value = bundle.activation((1,), given)
    inputs = [bundle.input(shape, given), bundle.constant(widths), value]
    bundle.op("PADV2", inputs, bundle.output(result, given), "PadV2")


def concatenation(bundle: Bundle) -> None:
    shape, given = some_shape(bundle), bundle.quantized()
    axis = bundle.pick(0, len(shape) - 1)
    lengths = bundle.sizes(1, 4, bundle.pick(2, 4))
    parts = [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    names = [bundle.input(parts[0], given)]
    for part in parts[1:]:
        fixed = bundle.often(0.2)
        names.append(bundle.activation(part, given) if fixed else bundle.input(part, given))
    result = bundle.output((*shape[:axis], sum(lengths), *shape[axis + 1 :]), given)
    stated = axis - len(shape) if bundle.often() else axis
    bundle.op("CONCATENATION", names, result, "Concatenation", Axis=stated)


def pack(bundle: Bundle) -> None:
    shape, given, count = some_shape(bundle, 1, 3), bundle.quantized(), bundle.pick(2, 3)
    axis = bundle.pick(0, len(shape))
    names = [bundle.input(shape, given) for _ in range(count)]
    result = bundle.output((*shape[:axis], count, *shape[axis:]), given)
    bundle.op("PACK", names, result, "Pack", Axis=axis, ValuesCount=count)


def split(bundle: Bundle) -> None:
    shape, count, given = some_shape(bundle), bundle.pick(1, 3), bundle.quantized()
    axis = bundle.pick(0, len(shape) - 1)
    whole = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    place = bundle.constant(np.array(axis - len(shape) if bundle.often() else axis, np.int32))
    source, results = bundle.input(whole, given), [bundle.output(shape, given) for _ in range(count)]
    bundle.op("SPLIT", [place, source], results, "Split", NumSplits=count)


def split_v(bundle: Bundle) -> None:
    shape, lengths, given = some_shape(bundle), bundle.sizes(1, 4, bundle.pick(1, 3)), bundle.quantized()
    axis = bundle.pick(0, len(shape) - 1)
    parts = [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]
    source = bundle.input((*shape[:axis], sum(lengths), *shape[axis + 1 :]), given)
    inputs = [source, bundle.places(*lengths), bundle.constant(np.array(axis, np.int32))]
    bundle.op("SPLIT_V", inputs, [bundle.output(part, given) for part in parts], "SplitV", NumSplits=len(lengths))


def slice_(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    begins = [bundle.pick(0, size - 1) for size in shape]
    sizes = [bundle.pick(1, size - begin) for size, begin in zip(shape, begins, strict=True)]
    ends = [
        -1 if begin + size == whole and bundle.often() else size
        for begin, size, whole in zip(begins, sizes, shape, strict=True)
    ]
    moved(bundle, "SLICE", shape, tuple(sizes), [np.array(begins, np.int32), np.array(ends, np.int32)])


def strided_slice(bundle: Bundle) -> None:
    """Forward and backward slices, with ends counted from either end or opened by masks, and single indices."""
    shape = some_shape(bundle)
    while True:
        strides = [bundle.one_of((1, 1, 2, 3, -1, -2)) for _ in shape]
        begins, ends = ([bundle.pick(-size, size) for size in shape] for _ in range(2))
        opened, ended, shrunk = (bundle.pick(0, 15) if bundle.often() else 0 for _ in range(3))
        kept, sizes = [], []
        for axis, size in enumerate(shape):
            if shrunk >> axis & 1:
                sizes.append(1 if -size <= begins[axis] < size and strides[axis] > 0 else 0)
                continue
            start = None if opened >> axis & 1 else begins[axis]
            stop = None if ended >> axis & 1 else ends[axis]
            sizes.append(len(range(size)[start : stop : strides[axis]]))
            kept.append(sizes[-1])
        if all(sizes) and kept:
            break
    constants = [np.array(values, np.int32) for values in (begins, ends, strides)]
    masks = {"BeginMask": opened, "EndMask": ended, "ShrinkAxisMask": shrunk}
    moved(bundle, "STRIDED_SLICE", shape, tuple(kept), constants, table="StridedSlice", **masks)


def reshape(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    result = list(bundle.one_of([shape[::-1], (1, *shape), (int(np.prod(shape)),), (*shape[:-1], 1, shape[-1])]))
    stated = list(result)
    stated[bundle.pick(0, len(stated) - 1)] = -1
    moved(bundle, "RESHAPE", shape, tuple(result), [np.array(bundle.one_of([result, stated]), np.int32)])


def transpose(bundle: Bundle) -> None:
    shape = bundle.sizes(1, 5, bundle.pick(1, 5))
    axes = bundle.random.permutation(len(shape)).astype(np.int32)
    moved(bundle, "TRANSPOSE", shape, tuple(shape[axis] for axis in axes), [axes])


def resize(code: str, table: str) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        image, sides = some_image(bundle), bundle.sizes(1, 20, 2)
        options = bundle.one_of([{}, {"AlignCorners": True}, {"HalfPixelCenters": True}])
        size = np.array(sides, np.int32)
        moved(bundle, code, image, (image[0], *sides, image[3]), [size], table=table, **options)

    return made


def arg_max(bundle: Bundle) -> None:
    shape = some_shape(bundle, 2)
    axis = bundle.pick(0, len(shape) - 1)
    place = bundle.constant(np.array(axis - len(shape) if bundle.often() else axis, np.int32))
    dtype, kind = bundle.one_of([("int32", tflite.TensorType.INT32), ("int64", tflite.TensorType.INT64)])
    result = bundle.output((*shape[:axis], *shape[axis + 1 :]), dtype=dtype)
    bundle.op("ARG_MAX", [bundle.input(shape), place], result, "ArgMax", OutputType=kind)
