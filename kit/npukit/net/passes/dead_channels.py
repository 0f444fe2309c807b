"""Removal of dead channels: constant for every input, or never read. Results stay exact for every input.

A constant channel is absorbed into the bias of the layers that read it. With padding, only a constant equal to the zero
point can be absorbed. Inputs, outputs and states of the net keep all channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Dense, Reshape
from npukit.net.passes.simplify import without_unread_constants
from npukit.net.tensor import Tensor
from npukit.net.value_ranges import LayerWeights, Range, filter_of, passes_on, value_ranges

_Kept = Mapping[str, np.ndarray]
"""Mask of kept channels by tensor name. Tensors without an entry keep all channels."""


def removed_channels(net: Net, pruned: Net) -> dict[str, tuple[int, int]]:
    """The number of removed channels and of original channels, by name of each changed op."""
    found = {}
    for before, after in zip(net.ops, pruned.ops, strict=True):
        shape, left = net.tensor(before.outputs[0]).shape, pruned.tensor(after.outputs[0]).shape
        if shape != left and not isinstance(before.attributes, Reshape):
            found[before.name] = (shape[-1] - left[-1], shape[-1])
    return found


def without_dead_channels(net: Net) -> Net:
    """The net without dead channels. Only ops with known channel dependencies lose channels."""
    layers = {op.name: layer for op in net.ops if (layer := _layer(net, op))}
    ranges = value_ranges(net)
    kept = _kept_channels(net, layers, ranges)
    changes = [change for layer in layers.values() if (change := _Change.of(net, layer, kept, ranges)).any]
    if not all(change.bias_fits for change in changes):
        return net
    return _changed(net, changes, kept)


@dataclass(frozen=True)
class _Layer:
    """An op with known channel dependencies: a filter, or an op that maps each channel to itself."""

    op: Op
    filter: LayerWeights | None

    @property
    def mixes(self) -> LayerWeights | None:
        """The filter if each output channel depends on all input channels, else None."""
        return None if self.filter is None or self.filter.depthwise else self.filter


def _layer(net: Net, op: Op) -> _Layer | None:
    found = filter_of(net, op)
    return _Layer(op, found) if found or passes_on(net, op) else None


def _kept_channels(net: Net, layers: Mapping[str, _Layer], ranges: Mapping[str, Range]) -> _Kept:
    """The channels that are read. Ops that map each channel to itself keep the same channels as their input."""
    kept: dict[str, np.ndarray] = {}
    for op in reversed(net.ops):
        if op.name in layers:
            needed = _read(net, op.output, layers, kept, ranges)
            needed[0] |= not needed.any()
            kept[op.output] = needed
    for op in net.ops:
        if op.name in layers and not layers[op.name].mixes:
            source = op.inputs[0]
            kept[op.output] = kept[source] if source in kept else np.ones(net.tensor(source).shape[-1], bool)
    return kept


def _read(net: Net, name: str, layers: Mapping[str, _Layer], kept: _Kept, ranges: Mapping[str, Range]) -> np.ndarray:
    """The channels of a tensor needed by its readers. An output of the net needs all."""
    channels = net.tensor(name).shape[-1]
    needed = np.full(channels, name in net.ends)
    for op in net.ops:
        if name in op.inputs:
            layer = layers.get(op.name)
            needed |= _needed(layer, kept[op.output], channels, ranges.get(name)) if layer else True
    return needed


def _needed(layer: _Layer, kept: np.ndarray, channels: int, given: Range | None) -> np.ndarray:
    """The input channels needed by a layer. `kept`: mask of kept output channels."""
    found = layer.mixes
    if found is None:
        return kept
    if found.weights.shape[-1] != channels:
        return np.ones(channels, bool)
    used = (found.weights[kept] != 0).any(axis=tuple(range(found.weights.ndim - 1)))
    return used & ~_absorbed(found, given)


def _absorbed(found: LayerWeights, given: Range | None) -> np.ndarray:
    """The constant input channels that the bias can absorb."""
    if given is None:
        return np.zeros(found.weights.shape[-1], bool)
    constant = given.low == given.high
    return constant & (given.low == found.zero) if found.padded else constant


@dataclass(frozen=True)
class _Change:
    """The change of an op: masks of kept input and output channels, new weights and bias."""

    op: Op
    before: np.ndarray
    after: np.ndarray
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None

    @classmethod
    def of(cls, net: Net, layer: _Layer, kept: _Kept, ranges: Mapping[str, Range]) -> _Change:
        op, found = layer.op, layer.filter
        channels, after = net.tensor(op.inputs[0]).shape[-1], kept[op.output]
        before = kept.get(op.inputs[0], np.ones(channels, bool))
        if found is None:
            return cls(op, before, after)
        if found.depthwise:
            return cls(op, before, after, found.weights[..., after], found.bias[after])
        if isinstance(op.attributes, Dense) and channels != found.weights.shape[-1]:
            before = np.ones(found.weights.shape[-1], bool)
        bias = _absorbing_bias(found, before, ranges.get(op.inputs[0]))
        return cls(op, before, after, found.weights[after][..., before], bias[after])

    @property
    def any(self) -> bool:
        return not (self.before.all() and self.after.all())

    @property
    def bias_fits(self) -> bool:
        limits = np.iinfo(np.int32)
        return self.bias is None or bool(((self.bias >= limits.min) & (self.bias <= limits.max)).all())


def _absorbing_bias(found: LayerWeights, before: np.ndarray, given: Range | None) -> np.ndarray:
    if given is None or before.all():
        return found.bias
    gone = found.weights[..., ~before].astype(np.int64)
    values = given.low[~before] - found.zero
    return found.bias + (gone * values).sum(axis=tuple(range(1, gone.ndim)))


def _changed(net: Net, changes: Sequence[_Change], kept: _Kept) -> Net:
    tensors, constants = dict(net.tensors), dict(net.constants)
    for name, channels in kept.items():
        if not channels.all():
            shape = (*net.tensor(name).shape[:-1], int(channels.sum()))
            tensors[name] = replace(net.tensor(name), shape=shape)
    ops = {}
    for change in changes:
        if change.weights is not None:
            ops[change.op.name], made = _with_constants(net, change)
            tensors |= {tensor.name: tensor for tensor, _ in made}
            constants |= {tensor.name: value for tensor, value in made}
    changed = replace(net, ops=tuple(ops.get(op.name, op) for op in net.ops), tensors=tensors, constants=constants)
    return without_unread_constants(changed)


def _with_constants(net: Net, change: _Change) -> tuple[Op, list[tuple[Tensor, np.ndarray]]]:
    """The op with new weights and bias, and their tensors and values."""
    op, weights, bias = change.op, net.tensor(change.op.inputs[1]), change.bias
    activation = op.inputs[0]
    assert change.weights is not None
    assert bias is not None
    made = [(_part(weights, f"{op.name} weights", change), change.weights.astype(weights.dtype))]
    if len(op.inputs) > 2:
        made.append((_part(net.tensor(op.inputs[2]), f"{op.name} bias", change), bias.astype(np.int32)))
    elif bias.any():
        made.append((Tensor(f"{op.name} bias", (len(bias),), "int32"), bias.astype(np.int32)))
    parts = [(replace(tensor, shape=value.shape), value) for tensor, value in made]
    names = tuple(tensor.name for tensor, _ in parts)
    return replace(op, inputs=(activation, *names)), parts


def _part(tensor: Tensor, name: str, change: _Change) -> Tensor:
    """A constant under a new name, with the scales of its kept channels."""
    quantization = tensor.quantization
    if quantization is not None and len(quantization.scales) == len(change.after) and quantization.axis is not None:
        stay = np.flatnonzero(change.after)
        scales = tuple(quantization.scales[i] for i in stay)
        quantization = replace(
            quantization, scales=scales, zero_points=tuple(quantization.zero_points[i] for i in stay)
        )
    return replace(tensor, name=name, quantization=quantization)
