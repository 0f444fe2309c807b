"""ONNX ops spelt in other ops of ONNX, before the import."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from npukit.errors import NpukitError
from npukit.frontend.onnx.dynamic_lstm import dynamic_lstm
from npukit.frontend.onnx.spelling import Spelling

REAL, COMPLEX = 1, 2
"""Numbers of each element, on the last axis of the data of a Fourier transform."""


def spelled(spelling: Spelling) -> list[onnx.NodeProto] | None:
    """The nodes in place of a node; None for a node that stays."""
    rule = SPELT.get((spelling.node.domain.replace("ai.onnx", ""), spelling.node.op_type))
    if rule is None:
        return None
    try:
        rule(spelling)
    except NpukitError as error:
        raise NpukitError(f"{spelling.node.op_type} ({spelling.node.name or 'unnamed'}): {error.message}") from error
    return spelling.nodes


def _dropout(spelling: Spelling) -> None:
    """A dropout changes nothing in inference. Its mask is true everywhere."""
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


def _waves(length: int, count: int) -> np.ndarray:
    """Cosines and negative sines of frequencies 0 to count - 1: [length, count, 2]."""
    turns = np.outer(np.arange(length), np.arange(count)) * (-2 * np.pi / length)
    return np.stack([np.cos(turns), np.sin(turns)], -1)


def _short_transform(spelling: Spelling) -> None:
    """STFT of real numbers: a convolution with a filter for each part of each frequency."""
    told, (signals, samples, *rest) = spelling.attributes, spelling.sizes(0)
    if rest not in ([], [REAL]):
        raise NpukitError("it transforms complex numbers, which npukit does not read yet")
    window = spelling.known(2, np.ones(0))
    length = int(spelling.known(3, window.size))
    window = window if window.size else np.ones(length)
    count = length // 2 + 1 if told.get("onesided", 1) else length
    filters = _waves(length, count) * window[:, np.newaxis, np.newaxis]
    filters = spelling.constant(filters.reshape(length, 1, 2 * count).T.astype(np.float32))
    line = spelling.reshaped(spelling.input(0), [signals, 1, samples])
    step = int(spelling.known(1))
    found = spelling.add("Conv", line, filters, strides=[step], kernel_shape=[length])
    rows = spelling.add("Transpose", found, perm=[0, 2, 1])
    frames = (samples - length) // step + 1
    spelling.reshaped(rows, [signals, frames, count, 2], to=spelling.node.output[0])


def _transform(spelling: Spelling) -> None:
    """DFT along the last axis but one: a product with a constant matrix."""
    told, shape = spelling.attributes, spelling.sizes(0)
    axis = int(spelling.known(2, told.get("axis", 1 if spelling.opset < 20 else -2))) % len(shape)
    size, parts = shape[-2:]
    length = int(spelling.known(1, size))
    if axis != len(shape) - 2 or length != size:
        raise NpukitError("it transforms another axis than the last, or another length, which npukit does not read yet")
    inverse = bool(told.get("inverse", 0))
    count = size // 2 + 1 if told.get("onesided", 0) else size
    real = _waves(size, count) * ([1, -1] if inverse else [1, 1])
    turned = np.stack([-real[..., 1], real[..., 0]], -1)  # a wave times the imaginary unit
    matrix = np.stack([real, turned][:parts], 1).reshape(size * parts, 2 * count) / (size if inverse else 1)
    flat = spelling.reshaped(spelling.input(0), [*shape[:-2], size * parts])
    found = spelling.add("MatMul", flat, spelling.constant(matrix.astype(np.float32)))
    spelling.reshaped(found, [*shape[:-2], count, 2], to=spelling.node.output[0])


SPELT: Mapping[tuple[str, str], Callable[[Spelling], None]] = {
    ("", "DFT"): _transform,
    ("", "Dropout"): _dropout,
    ("", "LpNormalization"): _lp_normalization,
    ("", "STFT"): _short_transform,
    ("com.microsoft", "DynamicQuantizeLSTM"): dynamic_lstm,
}
