"""ONNX ops spelt in other ops of ONNX, before the import."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np
import onnx

from npukit.errors import NpukitError
from npukit.frontend.fourier import fourier
from npukit.frontend.onnx.dynamic_lstm import dynamic_lstm
from npukit.frontend.onnx.spelling import Spelling

WITH_AXIS_AS_INPUT = 20
"""First opset whose DFT takes its axis as an input."""


def spelled(spelling: Spelling) -> list[onnx.NodeProto] | None:
    """The nodes in place of a node; None for a node that stays."""
    rule = SPELT.get((spelling.node.domain.replace("ai.onnx", ""), spelling.node.op_type))
    if rule is None:
        return None
    try:
        rule(spelling)
    except NpukitError as error:
        raise NpukitError(
            f"{spelling.node.op_type} ({spelling.node.name or 'unnamed'}): {error.message}", tries=error.tries
        ) from error
    return spelling.nodes


def _dropout(spelling: Spelling) -> None:
    """A dropout changes nothing in inference. Its mask is true everywhere."""
    if spelling.known(2, False) and spelling.known(1, 0.5):
        raise NpukitError("it is in training mode", tries=["export the model for inference: model.eval()"])
    spelling.add("Identity", spelling.input(0), to=spelling.node.output[0])
    if len(spelling.node.output) > 1 and spelling.node.output[1]:
        whole = spelling.constant(np.ones(spelling.sizes(0), bool))
        spelling.add("Identity", whole, to=spelling.node.output[1])


def _lp_normalization(spelling: Spelling) -> None:
    """Rows of zeros stay zeros."""
    told, data = spelling.attributes, spelling.input(0)
    axis = told.get("axis", -1) % len(spelling.sizes(0))
    if told.get("p", 2) == 1:
        length = spelling.summed(spelling.add("Abs", data), axis)
    else:
        length = spelling.add("Sqrt", spelling.summed(spelling.add("Mul", data, data), axis))
    least = spelling.constant(np.array(np.finfo(np.float32).tiny))
    spelling.add("Div", data, spelling.add("Max", length, least), to=spelling.node.output[0])


def _short_transform(spelling: Spelling) -> None:
    """STFT of real numbers: a convolution with a filter for each part of each frequency."""
    told, (signals, samples, *rest) = spelling.attributes, spelling.sizes(0)
    if rest not in ([], [1]):
        raise NpukitError("it transforms complex numbers, which npukit does not read yet")
    window = spelling.known(2, np.ones(0))
    length = int(spelling.known(3, window.size))
    window = window if window.size else np.ones(length)
    count = length // 2 + 1 if told.get("onesided", 1) else length
    waves = fourier(length, length, 1, onesided=bool(told.get("onesided", 1))) * window[:, np.newaxis]
    filters = spelling.constant(waves.T[:, np.newaxis].astype(np.float32))
    line = spelling.reshaped(spelling.input(0), [signals, 1, samples])
    step = int(spelling.known(1))
    found = spelling.add("Conv", line, filters, strides=[step], kernel_shape=[length])
    rows = spelling.add("Transpose", found, perm=[0, 2, 1])
    frames = (samples - length) // step + 1
    spelling.reshaped(rows, [signals, frames, count, 2], to=spelling.node.output[0])


def _transform(spelling: Spelling) -> None:
    """DFT along an axis: a product with a constant matrix."""
    told, (*sizes, parts) = spelling.attributes, spelling.sizes(0)
    rank, is_old = len(sizes), spelling.opset < WITH_AXIS_AS_INPUT
    axis = told.get("axis", 1) if is_old else int(spelling.known(2, -2))
    axis = axis if axis >= 0 else axis + rank + 1
    inverse, onesided = (bool(told.get(name, 0)) for name in ("inverse", "onesided"))
    length = int(spelling.known(1, 2 * sizes[axis] - 2 if inverse and onesided else sizes[axis]))
    matrix = fourier(sizes[axis], length, parts, inverse=inverse, onesided=onesided)
    order = [*(each for each in range(rank) if each != axis), axis, rank]
    moved = spelling.add("Transpose", spelling.input(0), perm=order)
    outer = [size for place, size in enumerate(sizes) if place != axis]
    found = spelling.add("MatMul", spelling.reshaped(moved, [*outer, len(matrix)]), spelling.constant(matrix))
    pairs = spelling.reshaped(found, [*outer, -1, 1 if inverse and onesided else 2])
    spelling.add("Transpose", pairs, to=spelling.node.output[0], perm=np.argsort(order).tolist())


def _space_to_depth(spelling: Spelling) -> None:
    """The places of a block are the first part of a result's channel, or in mode CRD the last."""
    told, (images, channels, height, width) = spelling.attributes, spelling.sizes(0)
    size = told["blocksize"]
    places = spelling.reshaped(spelling.input(0), [images, channels, height // size, size, width // size, size])
    order = [1, 3, 5] if told.get("mode") == b"CRD" else [3, 5, 1]
    moved = spelling.add("Transpose", places, perm=[0, *order, 2, 4])
    shape = [images, channels * size**2, height // size, width // size]
    spelling.reshaped(moved, shape, to=spelling.node.output[0])


def _compress(spelling: Spelling) -> None:
    """The chosen places of an axis, or of the data as a line."""
    data, axis = spelling.input(0), spelling.attributes.get("axis")
    data = spelling.reshaped(data, [-1]) if axis is None else data
    places = spelling.constant(np.flatnonzero(spelling.known(1)))
    spelling.add("Gather", data, places, to=spelling.node.output[0], axis=axis or 0)


def _einsum(spelling: Spelling) -> None:
    """A sum of products of two operands is a product of matrices. Other forms stay."""
    labels = _letters(spelling)
    if labels is None:
        spelling.nodes.append(spelling.node)
        return
    (one, other), result = labels
    sizes = dict(zip(one + other, [*spelling.sizes(0), *spelling.sizes(1)], strict=True))
    batch, inner = ([each for each in one if each in other and (each in result) == kept] for kept in (True, False))
    rows, columns = ([each for each in axes if each not in batch + inner] for axes in (one, other))
    count, depth, width = (prod(sizes[each] for each in axes) for axes in (rows, inner, columns))
    outer, made = [sizes[each] for each in batch], [*batch, *rows, *columns]
    first = _with_axes(spelling, spelling.input(0), one, batch + rows + inner)
    second = _with_axes(spelling, spelling.input(1), other, batch + inner + columns)
    first, second = spelling.reshaped(first, [*outer, count, depth]), spelling.reshaped(second, [*outer, depth, width])
    found = spelling.reshaped(spelling.add("MatMul", first, second), [sizes[each] for each in made])
    spelling.add("Identity", _with_axes(spelling, found, made, list(result)), to=spelling.node.output[0])


def _with_axes(spelling: Spelling, name: str, axes: Sequence[str], wanted: Sequence[str]) -> str:
    order = [list(axes).index(each) for each in wanted]
    return name if order == sorted(order) else spelling.add("Transpose", name, perm=order)


def _letters(spelling: Spelling) -> tuple[list[str], str] | None:
    """The letters of the axes of two operands and of the result; None for another form of Einsum."""
    given, arrow, result = spelling.attributes["equation"].decode().replace(" ", "").partition("->")
    operands = given.split(",")
    if (
        len(operands) != 2
        or not arrow
        or [len(each) for each in operands] != [len(spelling.sizes(at)) for at in (0, 1)]
    ):
        return None
    once = all(len(set(each)) == len(each) for each in (*operands, result))
    is_sum = set(operands[0]) ^ set(operands[1]) <= set(result) <= set("".join(operands))
    return (operands, result) if once and is_sum else None


SPELT: Mapping[tuple[str, str], Callable[[Spelling], None]] = {
    ("", "Compress"): _compress,
    ("", "DFT"): _transform,
    ("", "Dropout"): _dropout,
    ("", "Einsum"): _einsum,
    ("", "LpNormalization"): _lp_normalization,
    ("", "SpaceToDepth"): _space_to_depth,
    ("", "STFT"): _short_transform,
    ("com.microsoft", "DynamicQuantizeLSTM"): dynamic_lstm,
}
