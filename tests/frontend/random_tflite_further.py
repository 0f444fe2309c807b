"""Random int8 ops of TFLite composed of other ops, or compiled to C by TVM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tflite

from frontend.random_tflite_moves import moved
from frontend.tflite_bundle import Bundle, Quantized, some_image, some_shape


def depth_to_space(bundle: Bundle) -> None:
    block, (images, height, width, channels) = bundle.pick(1, 3), some_image(bundle)
    shape, result = (images, height, width, channels * block**2), (images, height * block, width * block, channels)
    moved(bundle, "DEPTH_TO_SPACE", shape, result, [], table="DepthToSpace", BlockSize=block)


def space_to_depth(bundle: Bundle) -> None:
    block, (images, height, width, channels) = bundle.pick(1, 3), some_image(bundle)
    shape, result = (images, height * block, width * block, channels), (images, height, width, channels * block**2)
    moved(bundle, "SPACE_TO_DEPTH", shape, result, [], table="SpaceToDepth", BlockSize=block)


def space_to_batch(bundle: Bundle) -> None:
    (images, height, width, channels), sides = some_image(bundle), bundle.sizes(1, 3, 2)
    before = bundle.sizes(0, 2, 2)
    after = [-(size + first) % side for size, first, side in zip((height, width), before, sides, strict=True)]
    results = [
        (size + first + last) // side
        for size, first, last, side in zip((height, width), before, after, sides, strict=True)
    ]
    around = np.array([before, after], np.int32).T
    result = (images * sides[0] * sides[1], *results, channels)
    constants = [np.array(sides, np.int32), np.ascontiguousarray(around)]
    moved(bundle, "SPACE_TO_BATCH_ND", (images, height, width, channels), result, constants, table="SpaceToBatchND")


def batch_to_space(bundle: Bundle) -> None:
    (images, height, width, channels), sides = some_image(bundle), bundle.sizes(1, 3, 2)
    around = np.array([bundle.sizes(0, 1, 2) for _ in sides], np.int32)
    cut = [size * side - int(pair.sum()) for size, side, pair in zip((height, width), sides, around, strict=True)]
    shape, result = (images * sides[0] * sides[1], height, width, channels), (images, *cut, channels)
    moved(bundle, "BATCH_TO_SPACE_ND", shape, result, [np.array(sides, np.int32), around], table="BatchToSpaceND")


def tile(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    counts = bundle.sizes(1, 3, len(shape))
    result = tuple(size * count for size, count in zip(shape, counts, strict=True))
    moved(bundle, "TILE", shape, result, [np.array(counts, np.int32)], table="Tile")


def unpack(bundle: Bundle) -> None:
    shape, given = bundle.sizes(1, 4, bundle.pick(2, 4)), bundle.quantized()
    axis = bundle.pick(0, len(shape) - 1)
    source, rest = bundle.input(shape, given), (*shape[:axis], *shape[axis + 1 :])
    outputs = [bundle.output(rest, given) for _ in range(shape[axis])]
    bundle.op("UNPACK", [source], outputs, "Unpack", Num=shape[axis], Axis=bundle.one_of([axis, axis - len(shape)]))


def reverse(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    axis = bundle.pick(0, len(shape) - 1)
    moved(bundle, "REVERSE_V2", shape, shape, [np.array([axis], np.int32)], table="ReverseV2")


def mirror_pad(bundle: Bundle) -> None:
    shape, itself = bundle.sizes(2, 5, bundle.pick(1, 4)), bundle.often()
    widths = np.array([bundle.sizes(0, size - (not itself), 2) for size in shape], np.int32)
    result = tuple(size + int(total) for size, total in zip(shape, widths.sum(axis=1), strict=True))
    mode = tflite.MirrorPadMode.SYMMETRIC if itself else tflite.MirrorPadMode.REFLECT
    moved(bundle, "MIRROR_PAD", shape, result, [widths], table="MirrorPad", Mode=mode)


def gather(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    axis = bundle.pick(0, len(shape) - 1)
    indices = bundle.random.integers(0, shape[axis], bundle.sizes(1, 4, bundle.pick(1, 2))).astype(np.int32)
    result = (*shape[:axis], *indices.shape, *shape[axis + 1 :])
    moved(bundle, "GATHER", shape, result, [indices], table="Gather", Axis=axis)


def gather_nd(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    sizes = shape[: bundle.pick(1, len(shape))]
    places = bundle.sizes(1, 4, bundle.pick(1, 2))
    indices = np.stack([bundle.random.integers(0, size, places) for size in sizes], -1).astype(np.int32)
    moved(bundle, "GATHER_ND", shape, (*places, *shape[len(sizes) :]), [indices], table="GatherNd")


def top_k(bundle: Bundle) -> None:
    shape, given = (*bundle.sizes(1, 4, bundle.pick(0, 2)), bundle.pick(2, 12)), bundle.quantized()
    count = bundle.pick(1, shape[-1])
    result = (*shape[:-1], count)
    source, wanted = bundle.input(shape, given), bundle.constant(np.array(count, np.int32))
    bundle.data[-1] = bundle.data[-1] // 32
    outputs = [bundle.output(result, given), bundle.output(result, dtype="int32")]
    bundle.op("TOPK_V2", [source, wanted], outputs, "TopKV2")


def cast(bundle: Bundle) -> None:
    """Floats to integers and Booleans, and back."""
    shape, wanted = some_shape(bundle), bundle.one_of(["int8", "int32", "int64", "bool"])
    large = wanted == "int64" and bundle.often()
    between = bundle.output(shape, dtype=wanted)
    bundle.op("CAST", [bundle.real_input(shape)], between, "Cast")
    bundle.data[-1] *= np.float32(1e15 if large else 10)
    if large:
        return
    real = bundle.model.tensor(bundle.name(), shape, dtype="float32")
    bundle.op("CAST", [between], real, "Cast")
    bundle.op("QUANTIZE", [real], bundle.output(shape, bundle.quantized()))


def extreme(code: str) -> Callable[[Bundle], None]:
    def made(bundle: Bundle) -> None:
        shape, keeps = some_shape(bundle, 2), bundle.often()
        axis = bundle.pick(0, len(shape) - 1)
        result = (*shape[:axis], *((1,) if keeps else ()), *shape[axis + 1 :])
        moved(bundle, code, shape, result, [np.array([axis], np.int32)], table="Reducer", KeepDims=keeps)

    return made


def arg_min(bundle: Bundle) -> None:
    shape = some_shape(bundle, 2)
    axis = bundle.pick(0, len(shape) - 1)
    result = bundle.output((*shape[:axis], *shape[axis + 1 :]), dtype="int32")
    inputs = [bundle.input(shape), bundle.constant(np.array(axis, np.int32))]
    bundle.op("ARG_MIN", inputs, result, "ArgMin", OutputType=tflite.TensorType.INT32)


def select(bundle: Bundle) -> None:
    """Elements are taken from either of two tensors, depending on a comparison."""
    shape, compared, given = some_shape(bundle), bundle.quantized(), bundle.quantized()
    limit = bundle.activation(shape, compared)
    condition = bundle.model.tensor(bundle.name(), shape, dtype="bool")
    code, table = bundle.one_of([("GREATER", "Greater"), ("LESS_EQUAL", "LessEqual"), ("EQUAL", "Equal")])
    bundle.op(code, [bundle.input(shape, compared), limit], condition, table)
    choices = [bundle.input(shape, given), bundle.input(shape, given)]
    bundle.op("SELECT_V2", [condition, *choices], bundle.output(shape, given), "SelectV2")


def squared_difference(bundle: Bundle) -> None:
    shape = some_shape(bundle)
    operands = [bundle.input(shape), bundle.input(shape)]
    bundle.op("SQUARED_DIFFERENCE", operands, bundle.output(shape, bundle.quantized()), "SquaredDifference")


def l2_normalization(bundle: Bundle) -> None:
    shape = (*bundle.sizes(1, 4, bundle.pick(1, 3)), bundle.pick(2, 20))
    result = bundle.output(shape, bundle.fitting(Quantized(1 / 128, 0)))
    bundle.op("L2_NORMALIZATION", [bundle.input(shape)], result, "L2Norm")


MAKERS: dict[str, Callable[[Bundle], None]] = {
    "arg_min": arg_min,
    "batch_to_space": batch_to_space,
    "cast": cast,
    "depth_to_space": depth_to_space,
    "gather": gather,
    "gather_nd": gather_nd,
    "mirror_pad": mirror_pad,
    "reduce_max": extreme("REDUCE_MAX"),
    "reduce_min": extreme("REDUCE_MIN"),
    "reverse": reverse,
    "select": select,
    "space_to_batch": space_to_batch,
    "space_to_depth": space_to_depth,
    "squared_difference": squared_difference,
    "tile": tile,
    "top_k": top_k,
    "unpack": unpack,
}
ROUNDED: dict[str, Callable[[Bundle], None]] = {"l2_normalization": l2_normalization}
"""Ops that npukit rounds once."""
