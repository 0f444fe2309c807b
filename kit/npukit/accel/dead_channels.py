"""Channels that are constant whatever the input, or that are not read, taken out of a net. Exact for every input.

A constant that a layer reads becomes part of its bias; under padding that holds only for the zero point itself.
Inputs and outputs of the net keep all of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.accel.core_nodes import core_nodes
from npukit.accel.cortex_m.input_ranges import with_ranges
from npukit.accel.cortex_m.layer import ConvLayer, CopyLayer, DenseLayer, DepthwiseLayer, Layer, PoolLayer
from npukit.accel.cortex_m.network import Node
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Reshape
from npukit.net.tensor import Tensor

_PASSING_ON = CopyLayer | DepthwiseLayer | PoolLayer
_Kept = Mapping[int, np.ndarray]
"""The channels of each node that stay."""


def removed_channels(net: Net, pruned: Net) -> dict[str, tuple[int, int]]:
    """The channels removed from each op that lost any, and those it had."""
    found = {}
    for before, after in zip(net.ops, pruned.ops, strict=True):
        shape, left = net.tensor(before.outputs[0]).shape, pruned.tensor(after.outputs[0]).shape
        if shape != left and not isinstance(before.attributes, Reshape):
            found[before.name] = (shape[-1] - left[-1], shape[-1])
    return found


def without_dead_channels(net: Net) -> Net:
    """The net without dead channels, on any engine: an op may lose channels if the core knows what it does."""
    found = core_nodes(net.with_ops(tuple(op.placed(CORE) for op in net.ops)))
    nodes = with_ranges(found.nodes)
    kept = _kept_channels(nodes)
    ops = {op.name: op for op in net.ops}
    named = ((i, ops[owner]) for i, owner in enumerate(found.owners) if owner)
    changes = [change for i, op in named if (change := _Change.of(op, nodes[i], kept, i)).any]
    if not all(change.bias_fits for change in changes):
        return net
    return _changed(net, changes, found.homes)


def _kept_channels(nodes: Sequence[Node]) -> _Kept:
    """The channels that are read; then those that pass channels on have all those of their input."""
    kept: dict[int, np.ndarray] = {}
    for index in reversed(range(len(nodes))):
        layer = nodes[index].layer
        needed = np.ones(layer.output_shape[2], bool)
        if isinstance(layer, ConvLayer | DenseLayer | _PASSING_ON):
            needed[:] = False
            for reader, node in enumerate(nodes):
                if index in node.inputs:
                    needed |= _needed(node.layer, kept[reader], len(needed))
            needed[0] |= not needed.any()
        kept[index] = needed
    for index, node in enumerate(nodes):
        if isinstance(node.layer, _PASSING_ON):
            kept[index] = kept[node.inputs[0]]
    return kept


def _needed(layer: Layer, kept: np.ndarray, channels: int) -> np.ndarray:
    """The channels of its input that a layer cannot do without, given which of its outputs stay."""
    if isinstance(layer, _PASSING_ON):
        return kept
    if not isinstance(layer, ConvLayer | DenseLayer) or layer.input_shape[2] != channels:
        return np.ones(channels, bool)
    used = (layer.weights[kept] != 0).any(axis=tuple(range(layer.weights.ndim - 1)))
    return used & ~_absorbed(layer)


def _absorbed(layer: ConvLayer | DenseLayer) -> np.ndarray:
    """The input channels that are constants that the bias can hold."""
    found = layer.input_range
    if found is None:
        return np.zeros(layer.input_shape[2], bool)
    constant = found.low == found.high
    padded = isinstance(layer, ConvLayer) and any(layer.padding)
    return constant & (found.low == layer.input_zero) if padded else constant


@dataclass(frozen=True)
class _Change:
    """The change of an op: the channels of its input and of its output that stay, its weights and its bias."""

    op: Op
    before: np.ndarray
    after: np.ndarray
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None

    @classmethod
    def of(cls, op: Op, node: Node, kept: _Kept, index: int) -> _Change:
        layer, before, after = node.layer, kept[node.inputs[0]], kept[index]
        if isinstance(layer, DepthwiseLayer):
            return cls(op, before, after, layer.weights[None, :, :, after], layer.bias[after])
        if not isinstance(layer, ConvLayer | DenseLayer):
            return cls(op, before, after)
        if len(before) != layer.input_shape[2]:
            before = np.ones(layer.input_shape[2], bool)
        return cls(op, before, after, layer.weights[after][..., before], _absorbing_bias(layer, before)[after])

    @property
    def any(self) -> bool:
        return not (self.before.all() and self.after.all())

    @property
    def bias_fits(self) -> bool:
        limits = np.iinfo(np.int32)
        return self.bias is None or bool(((self.bias >= limits.min) & (self.bias <= limits.max)).all())


def _absorbing_bias(layer: ConvLayer | DenseLayer, before: np.ndarray) -> np.ndarray:
    if layer.input_range is None:
        return layer.bias
    gone = layer.weights[..., ~before].astype(np.int64)
    values = layer.input_range.low[~before] - layer.input_zero
    return layer.bias + (gone * values).sum(axis=tuple(range(1, gone.ndim)))


def _changed(net: Net, changes: Sequence[_Change], homes: Mapping[str, str]) -> Net:
    kept = {change.op.output: change.after for change in changes}
    tensors, constants = dict(net.tensors), dict(net.constants)
    for name, home in homes.items():
        if home in kept:
            shape = (*net.tensor(name).shape[:-1], int(kept[home].sum()))
            tensors[name] = replace(net.tensor(name), shape=shape)
    ops = {}
    for change in changes:
        if change.weights is not None:
            ops[change.op.name], made = _with_constants(net, change)
            tensors |= {tensor.name: tensor for tensor, _ in made}
            constants |= {tensor.name: value for tensor, value in made}
    changed = replace(net, ops=tuple(ops.get(op.name, op) for op in net.ops), tensors=tensors, constants=constants)
    return _without_unread_constants(changed)


def _with_constants(net: Net, change: _Change) -> tuple[Op, list[tuple[Tensor, np.ndarray]]]:
    """The op with weights and bias of its own, and these."""
    op, weights, bias = change.op, net.tensor(change.op.inputs[1]), change.bias
    activation = op.inputs[0]
    assert change.weights is not None
    assert bias is not None
    made = [(_part(weights, f"{op.name} weights", change), change.weights.astype(weights.dtype))]
    if len(op.inputs) > 2:
        made.append((_part(net.tensor(op.inputs[2]), f"{op.name} bias", change), bias.astype(np.int32)))
    elif bias.any():
        made.append((Tensor(f"{op.name} bias", (len(bias),), "int32"), bias.astype(np.int32)))
    parts = [(replace(tensor, shape=_shape(value)), value) for tensor, value in made]
    names = tuple(tensor.name for tensor, _ in parts)
    return replace(op, inputs=(activation, *names)), parts


def _shape(value: np.ndarray) -> tuple[int, ...]:
    return tuple(int(size) for size in value.shape)


def _part(tensor: Tensor, name: str, change: _Change) -> Tensor:
    """A constant under a name of its own, with the scales of the channels that stay."""
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scales) == len(change.after) and quantization.axis is not None:
        stay = np.flatnonzero(change.after)
        scales = tuple(quantization.scales[i] for i in stay)
        quantization = replace(
            quantization, scales=scales, zero_points=tuple(quantization.zero_points[i] for i in stay)
        )
    return replace(tensor, name=name, quantization=quantization)


def _without_unread_constants(net: Net) -> Net:
    read = {name for op in net.ops for name in op.inputs}
    gone = {name for name in net.constants if name not in read}
    constants = {name: value for name, value in net.constants.items() if name not in gone}
    tensors = {name: tensor for name, tensor in net.tensors.items() if name not in gone}
    return replace(net, tensors=tensors, constants=constants)
