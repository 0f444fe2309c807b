"""A tile of an op as a net of its own: the same arithmetic on a smaller shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Attributes, DepthwiseConv2d, Padding
from npukit.net.tensor import Quantization, Tensor
from npukit.plan.receptive import input_rules, needs

FILTERED = ("conv2d", "depthwise_conv2d", "dense")


def tile_net(net: Net, op: Op, output: Box) -> Net:
    """A net of the one op that computes `output` from exactly the boxes it needs.

    Its inputs are the op's activations in order; padding is what of the window lies outside the whole input.
    """
    boxes = dict(zip(net.activations(op), needs(net, op, output), strict=True))
    tensors = {name: replace(net.tensor(name), shape=box.shape) for name, box in boxes.items()}
    tensors[op.output] = replace(net.tensor(op.output), shape=output.shape)
    constants = {name: net.constants[name] for name in op.inputs if name in net.constants}
    if op.kind in FILTERED:
        constants = {name: _channels(op, name, value, output) for name, value in constants.items()}
    tensors |= {name: _constant_tensor(net, op, name, value, output) for name, value in constants.items()}
    tile = replace(op, attributes=_padded(net, op, output, next(iter(boxes.values()), output)))
    return Net(f"{net.name} {op.name} {output}", tuple(boxes), (op.output,), (tile,), tensors, constants)


def _channels(op: Op, name: str, value: np.ndarray, output: Box) -> np.ndarray:
    """The output channels of the tile, of weights or bias."""
    depthwise = isinstance(op.attributes, DepthwiseConv2d) and name == op.inputs[1]
    chosen = slice(output.start[-1], output.stop[-1])
    return value[..., chosen] if depthwise else value[chosen]


def _constant_tensor(net: Net, op: Op, name: str, value: np.ndarray, output: Box) -> Tensor:
    tensor = net.tensor(name)
    quantization = tensor.quantization
    if quantization is not None and op.kind in FILTERED and len(quantization.scales) > 1:
        chosen = slice(output.start[-1], output.stop[-1])
        quantization = Quantization(quantization.scales[chosen], quantization.zero_points[chosen], quantization.axis)
    return replace(tensor, shape=value.shape, quantization=quantization)


def _padded(net: Net, op: Op, output: Box, source: Box) -> Attributes:
    attributes: Any = op.attributes
    if not hasattr(attributes, "padding") or len(output.start) != 4:
        return attributes
    rule = input_rules(net, op)[0]
    before = [source.start[i] - (output.start[i] * rule[i].stride - rule[i].before) for i in (1, 2)]
    after = [(output.stop[i] - 1) * rule[i].stride - rule[i].before + rule[i].reach - source.stop[i] for i in (1, 2)]
    padding: Padding = (before[0], before[1], max(after[0], 0), max(after[1], 0))
    return replace(attributes, padding=padding)
