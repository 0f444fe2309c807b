"""Products with a constant by channel, and PReLUs, as depthwise convolutions of one pixel, where an engine takes them.

A channel's factor becomes a weight, a bias and a scale with equal results for all 256 values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add, DepthwiseConv2d, Multiply, Prelu
from npukit.net.passes.lines import Draft, Ends, Factor, LineFilter, is_one_image, line_filter
from npukit.net.passes.simplify import without_unread
from npukit.net.passes.tabled import results_of_bytes
from npukit.net.requantize import product_rescaling, quantization, rescale
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization

_BYTES = -128, 127
_NEGATIVE = 127
"""The zero point of a tensor of the negative differences from a zero point."""


def with_filters_by_channel(net: Net, cycles: Callable[[Net, Op], float]) -> Net:
    """The net with depthwise convolutions for ops by channel. `cycles`: of an op on the fastest accelerator that takes
    it, infinite if none does."""
    for op in net.ops:
        made = _made(net, op) if _is_by_channel(net, op) else None
        filters = (each for each in made.ops if isinstance(each.attributes, DepthwiseConv2d)) if made else ()
        if made and sum(cycles(made, each) for each in filters if each not in net.ops) < cycles(net, op):
            net = without_unread(made)
    return net


def _is_by_channel(net: Net, op: Op) -> bool:
    """True for a product or a PReLU of an int8 tensor and a constant with a value for each channel."""
    held = [name for name in op.inputs if name in net.constants]
    if not isinstance(op.attributes, Multiply | Prelu) or len(held) != 1:
        return False
    source, shape = net.tensor(next(net.activations(op))), net.tensor(op.output).shape
    channels = net.tensor(held[0]).shape[-1:]
    return (
        {net.tensor(name).dtype for name in (*op.inputs, op.output)} == {"int8"}
        and source.shape == shape
        and is_one_image(shape)
        and channels == shape[-1:]
        and net.tensor(held[0]).elements == prod(channels) > 1
    )


def _made(net: Net, op: Op) -> Net | None:
    """The net with filters in place of the op; None if a channel has no filter with equal results."""
    draft, made = Draft(net, op), quantization(net, op.output)
    held = next(name for name in op.inputs if name in net.constants)
    step = quantization(net, held)
    slopes = net.constants[held].ravel().astype(np.int64) - step.zero_point
    factors = [(int(slope), step.scale) for slope in slopes]
    if not isinstance(op.attributes, Multiply):
        return _of_prelu(net, op, draft, factors)
    ends = Ends(quantization(net, next(net.activations(op))), made, op.attributes.clamp, net.rounds_once)
    filters = line_filter(results_of_bytes(net, op), ends, factors)
    return filters and draft.finished(draft.filter("product", draft.image, made, filters, op.attributes.clamp))


def _of_prelu(net: Net, op: Op, draft: Draft, factors: Sequence[Factor]) -> Net | None:
    """The net with a sum of two filters: of values below the zero point, and of the others."""
    source, made = (quantization(net, name) for name in (op.inputs[0], op.output))
    below, slopes = Quantization(source.scales, (_NEGATIVE,)), np.array([slope for slope, _ in factors])
    sloped = rescale((EVERY - _NEGATIVE) * slopes[:, None], product_rescaling(net, op)) + made.zero_point
    filters = line_filter(np.clip(sloped, *_BYTES), Ends(below, made, _BYTES, net.rounds_once), factors)
    if filters is None:
        return None
    same, image = LineFilter([1], [0], [1.0]).repeated(len(factors)), draft.image
    negative = draft.filter("negative", image, below, same, _BYTES)
    positive = draft.filter("positive", image, made, same, (made.zero_point, 127))
    parts = draft.filter("sloped", negative, made, filters, _BYTES), positive
    return draft.finished(draft.add("sum", Add(), parts, made))
