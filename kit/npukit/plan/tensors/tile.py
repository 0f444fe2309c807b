"""A tile of an op as a net of its own: the same arithmetic on a smaller shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Attributes, DepthwiseConv2d, Padding, Sums
from npukit.net.receptive import input_rules, needs
from npukit.net.tensor import Quantization, Tensor

FILTERED = ("conv2d", "depthwise_conv2d", "dense", "sums")


def tile_net(net: Net, op: Op, output: Box) -> Net:
    """A net of the one op that computes `output` from exactly the boxes it needs.

    Its inputs are the op's activations, one by one; padding is what of the window lies outside the whole input.
    """
    boxes = needs(net, op, output)
    names = tuple(net.activations(op))
    if (output, *boxes) == tuple(Box.whole(net.tensor(name).shape) for name in (op.output, *names)):
        return replace(net.alone(op), inputs=names)
    apart, parts = _with_inputs_apart(net, op)
    inputs = [name for part in parts for name in apart.activations(part) if name not in _made_by(parts)]
    found = dict(zip(inputs, boxes, strict=True)) | dict.fromkeys(_made_by(parts), output)
    tensors = {name: replace(apart.tensor(name), shape=box.shape) for name, box in found.items()}
    constants: dict[str, np.ndarray] = {}
    for part in parts:
        values = _constants(apart, part, output)
        tensors |= {name: _constant_tensor(apart, part, name, value, output) for name, value in values.items()}
        constants |= values
    tiles = tuple(_tile(apart, part, output, found) for part in parts)
    return Net(f"{net.name} {op.name} {output}", tuple(inputs), (op.output,), tiles, tensors, constants)


def _with_inputs_apart(net: Net, op: Op) -> tuple[Net, tuple[Op, ...]]:
    """The parts, each with names of its own for what comes from outside: each needs another box of it."""
    inside, tensors, parts = _made_by(op.parts), dict(net.tensors), []
    for part in op.parts:
        own = {n: n if part is op.parts[0] or n in inside else f"{n} of {part.name}" for n in net.activations(part)}
        tensors |= {new: replace(net.tensor(old), name=new) for old, new in own.items()}
        parts.append(replace(part, inputs=tuple(own.get(name, name) for name in part.inputs)))
    return replace(net, tensors=tensors), tuple(parts)


def _made_by(parts: Sequence[Op]) -> tuple[str, ...]:
    return tuple(name for part in parts for name in part.outputs)


def _weights(net: Net, op: Op) -> list[str]:
    return [name for name in op.inputs if name in net.constants]


def _constants(net: Net, op: Op, output: Box) -> dict[str, np.ndarray]:
    constants = {name: net.constants[name] for name in _weights(net, op)}
    return {n: _channels(op, n, value, output) for n, value in constants.items()} if op.kind in FILTERED else constants


def _tile(net: Net, op: Op, output: Box, boxes: Mapping[str, Box]) -> Op:
    first = next(net.activations(op), None)
    return replace(op, attributes=_padded(net, op, output, boxes[first] if first else output))


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
    if isinstance(attributes, Sums):
        attributes = replace(attributes, first=0)
    if not hasattr(attributes, "padding") or len(output.start) != 4:
        return attributes
    rule = input_rules(net, op)[0]
    before = [source.start[i] - (output.start[i] * rule[i].stride - rule[i].before) for i in (1, 2)]
    after = [(output.stop[i] - 1) * rule[i].stride - rule[i].before + rule[i].reach - source.stop[i] for i in (1, 2)]
    padding: Padding = (before[0], before[1], max(after[0], 0), max(after[1], 0))
    return replace(attributes, padding=padding)
