"""Dilated convolutions as converters write them: a plain convolution between two ops that rearrange the image.

SPACE_TO_BATCH_ND, a convolution without padding and BATCH_TO_SPACE_ND together are one convolution with a dilated
window.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import tflite

from npukit.frontend.tflite.model import TfliteModel, TfliteOp

TO_BATCH, FROM_BATCH = "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"
CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
_PLAIN = {"Padding": tflite.Padding.VALID, **dict.fromkeys(("StrideH", "StrideW"), 1)}
_UNDILATED = dict.fromkeys(("DilationHFactor", "DilationWFactor"), 1)


def with_dilated(model: TfliteModel) -> TfliteModel:
    """The model with a dilated convolution in place of the last op of each sequence of the three ops."""
    reads = Counter([index for op in model.ops for index in op.inputs] + list(model.outputs))
    makers = {index: place for place, op in enumerate(model.ops) for index in op.outputs}
    readers = {index: place for place, op in enumerate(model.ops) for index in op.inputs}
    ops: list[TfliteOp | None] = list(model.ops)
    for place, op in enumerate(model.ops):
        if op.kind in CONVOLUTIONS and reads[op.inputs[0]] == reads[op.outputs[0]] == 1:
            first, last = makers.get(op.inputs[0], place), readers.get(op.outputs[0], place)
            made = _dilated(model, model.ops[first], op, model.ops[last])
            if made:
                ops[first], ops[place], ops[last] = None, None, made
    return replace(model, ops=tuple(op for op in ops if op))


def _dilated(model: TfliteModel, cut: TfliteOp, op: TfliteOp, joined: TfliteOp) -> TfliteOp | None:
    """The three ops as a dilated convolution; None for any other ops."""
    if (cut.kind, joined.kind) != (TO_BATCH, FROM_BATCH) or joined.inputs[0] != op.outputs[0]:
        return None
    if any(op.options.get(name) != value for name, value in {**_PLAIN, **_UNDILATED}.items()):
        return None
    before, behind = _amounts(model, cut), _amounts(model, joined)
    ends = [(model.tensors[each.inputs[0]], model.tensors[each.outputs[0]]) for each in (cut, joined)]
    keep_scales = all(source.quantization == result.quantization for source, result in ends)
    if before is None or behind is None or not keep_scales:
        return None
    (height, width), around = before
    (top, bottom), (left, right) = (around - behind[1]).tolist()
    if not np.array_equal(before[0], behind[0]) or min(top, left, bottom, right) < 0:
        return None
    inputs, padded = (cut.inputs[0], *op.inputs[1:]), (top, left, bottom, right)
    return replace(op, inputs=inputs, outputs=joined.outputs, dilation=(int(height), int(width)), padding=padded)


def _amounts(model: TfliteModel, op: TfliteOp) -> tuple[np.ndarray, np.ndarray] | None:
    """The sides of a block, and the padding or cropping around the image; None if not two-dimensional and constant."""
    if len(op.inputs) != 3 or min(op.inputs) < 0 or len(model.tensors[op.inputs[0]].shape) != 4:
        return None
    sides, around = (model.tensors[index].value for index in op.inputs[1:])
    if sides is None or around is None or (sides.shape, around.shape) != ((2,), (2, 2)):
        return None
    return sides, around
