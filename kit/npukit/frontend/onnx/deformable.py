"""ONNX's deformable convolution: a filter on samples at places that the network computes."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, te, tirx

from npukit.frontend.onnx.node import padded

loops: Any = te


def deform_conv(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    """Inputs: data, weights, offsets, [bias], [mask]."""
    data, weights, offsets, bias, mask = padded(inputs, 5)
    (outputs, _, *window), (images, _, *sizes) = weights.ty.shape, offsets.ty.shape
    if mask is None:
        parts = int(offsets.ty.shape[1]) // 2
        mask = relax.const(np.ones((int(images), parts, *map(int, sizes)), np.float32))
    bias = relax.const(np.zeros(int(outputs), np.float32)) if bias is None else bias
    steps = [attr.get(name, [1, 1]) for name in ("strides", "dilations")]
    places = *steps, attr.get("pads", [0] * 4)[:2], attr.get("offset_group", 1), attr.get("group", 1)
    attr.get("kernel_shape", window)
    operands = [bb.normalize(each) for each in (data, weights, offsets, bias, mask)]
    return bb.call_te(_filtered, *operands, places, primfunc_name_hint="deform_conv")


def _filtered(data: Any, weights: Any, offsets: Any, bias: Any, mask: Any, places: Any) -> Any:
    (strides, dilations, pads, parts, groups), (outputs, depth, tall, wide) = places, weights.shape
    images, _, *sizes = offsets.shape
    of_part = data.shape[1] // parts

    def sample(image: Any, channel: Any, i: Any, j: Any, row: Any, column: Any) -> Any:
        tap = (channel // of_part * tall + i) * wide + j
        starts = (
            each * step + tap_ * gap - pad
            for each, tap_, step, gap, pad in zip((row, column), (i, j), strides, dilations, pads, strict=True)
        )
        y, x = (
            start.astype("float32") + offsets[image, 2 * tap + axis, row, column] for axis, start in enumerate(starts)
        )
        return _between(data, image, channel, y, x) * mask[image, tap, row, column]

    samples = loops.compute((images, data.shape[1], tall, wide, *sizes), sample, name="samples")
    axes = [loops.reduce_axis((0, size), name) for size, name in ((depth, "c"), (tall, "i"), (wide, "j"))]

    def total(image: Any, output: Any, row: Any, column: Any) -> Any:
        channel, i, j = axes
        taken = samples[image, output // (outputs // groups) * depth + channel, i, j, row, column]
        return loops.sum(taken * weights[output, channel, i, j], axis=axes)

    sums = loops.compute((images, outputs, *sizes), total, name="sums")
    return loops.compute(sums.shape, lambda n, c, y, x: sums[n, c, y, x] + bias[c], name="biased")


def _between(data: Any, image: Any, channel: Any, y: Any, x: Any) -> Any:
    """The number between four neighbours. Neighbours outside the data are zero."""
    top, left = (tirx.floor(each).astype("int32") for each in (y, x))
    down, right = y - top.astype("float32"), x - left.astype("float32")
    height, width = data.shape[2:]

    def at(row: Any, column: Any) -> Any:
        inside = tirx.all(row >= 0, row < height, column >= 0, column < width)
        return tirx.if_then_else(inside, data[image, channel, row, column], tirx.const(0.0, "float32"))

    above = at(top, left) * (1.0 - right) + at(top, left + 1) * right
    below = at(top + 1, left) * (1.0 - right) + at(top + 1, left + 1) * right
    return above * (1.0 - down) + below * down
