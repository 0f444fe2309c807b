"""Removing channels that are constant whatever the input, and those nobody looks at. Exact for every input.

A constant input of a layer becomes part of its bias. Under padding that holds only for the zero point itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from npukit.codegen.cortex_m.layer import ConvLayer, DenseLayer, DepthwiseLayer, Layer, PoolLayer, Range, Requantization
from npukit.codegen.cortex_m.network import INPUT, Node
from npukit.codegen.cortex_m.ranges import output_range


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes with the range of each layer's input, as the layers before it imply."""
    ranges: dict[int, Range] = {}
    result: list[Node] = []
    for index, node in enumerate(nodes):
        found = ranges.get(node.inputs[0])
        layer = node.layer
        if found is not None and isinstance(layer, ConvLayer | DepthwiseLayer | DenseLayer):
            layer = replace(layer, input_range=_repeated(found, layer.input_shape[2]))
        result.append(replace(node, layer=layer))
        if isinstance(layer, ConvLayer | DepthwiseLayer | DenseLayer):
            ranges[index] = output_range(layer)
        elif isinstance(layer, PoolLayer) and found is not None:
            ranges[index] = found
    return tuple(result)


def without_dead_channels(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes without the channels that can go. Inputs and outputs of the network keep theirs."""
    nodes = with_ranges(nodes)
    kept = _kept_channels(nodes)
    result = []
    for index, node in enumerate(nodes):
        before = kept.get(node.inputs[0]) if node.inputs[0] != INPUT else None
        result.append(replace(node, layer=_reduced(node.layer, before, kept[index])))
    return tuple(result)


def _repeated(found: Range, channels: int) -> Range:
    """A range of channels as that of a flattened tensor."""
    times = channels // len(found.low)
    return Range(np.tile(found.low, times), np.tile(found.high, times))


def _kept_channels(nodes: Sequence[Node]) -> Mapping[int, np.ndarray]:
    """For each node which output channels stay, from the last node to the first."""
    kept: dict[int, np.ndarray] = {}
    for index in reversed(range(len(nodes))):
        channels = nodes[index].layer.output_shape[2]
        readers = [i for i, node in enumerate(nodes) if index in node.inputs]
        needed = np.zeros(channels, bool) if readers else np.ones(channels, bool)
        for reader in readers:
            needed |= _needed(nodes[reader].layer, kept[reader], channels)
        if not needed.any():
            needed[0] = True
        kept[index] = needed
    return kept


def _needed(layer: Layer, kept: np.ndarray, channels: int) -> np.ndarray:
    """Which of its input's channels a layer cannot do without, given which of its outputs stay."""
    if isinstance(layer, DepthwiseLayer | PoolLayer):
        return kept
    if not isinstance(layer, ConvLayer | DenseLayer) or layer.input_shape[2] != channels:
        return np.ones(channels, bool)
    used = (layer.weights[kept] != 0).any(axis=tuple(range(layer.weights.ndim - 1)))
    return used & ~_absorbed(layer)


def _absorbed(layer: ConvLayer | DenseLayer) -> np.ndarray:
    """Which input channels are constants that the bias can hold."""
    found = layer.input_range
    if found is None:
        return np.zeros(layer.input_shape[2], bool)
    constant = found.low == found.high
    if isinstance(layer, ConvLayer) and any(layer.padding):
        return constant & (found.low == layer.input_zero)
    return constant


def _reduced(layer: Layer, before: np.ndarray | None, after: np.ndarray) -> Layer:
    """A layer without the channels that went from its input and its output."""
    if isinstance(layer, DepthwiseLayer):
        shape = (*layer.input_shape[:2], int(after.sum()))
        return replace(
            layer,
            input_shape=shape,
            weights=layer.weights[:, :, after],
            bias=layer.bias[after],
            requantization=_chosen(layer.requantization, after),
            input_range=_of(layer.input_range, after),
        )
    if isinstance(layer, PoolLayer):
        return replace(layer, input_shape=(*layer.input_shape[:2], int(after.sum())))
    if isinstance(layer, ConvLayer | DenseLayer):
        return _reduced_outputs(_reduced_inputs(layer, before), after)
    return layer


def _reduced_inputs(layer: ConvLayer | DenseLayer, before: np.ndarray | None) -> ConvLayer | DenseLayer:
    if before is None or len(before) != layer.input_shape[2] or layer.input_range is None:
        return layer
    gone = layer.weights[..., ~before].astype(np.int64)
    values = layer.input_range.low[~before] - layer.input_zero
    bias = layer.bias + (gone * values).sum(axis=tuple(range(1, gone.ndim)))
    reduced = replace(layer, weights=layer.weights[..., before], bias=bias, input_range=_of(layer.input_range, before))
    if isinstance(reduced, ConvLayer):
        return replace(reduced, input_shape=(*reduced.input_shape[:2], int(before.sum())))
    return reduced


def _reduced_outputs(layer: ConvLayer | DenseLayer, after: np.ndarray) -> ConvLayer | DenseLayer:
    return replace(
        layer,
        weights=layer.weights[after],
        bias=layer.bias[after],
        requantization=_chosen(layer.requantization, after),
    )


def _chosen(requantization: Requantization, channels: np.ndarray) -> Requantization:
    return replace(
        requantization,
        multipliers=requantization.multipliers[channels],
        shifts=requantization.shifts[channels],
    )


def _of(found: Range | None, channels: np.ndarray) -> Range | None:
    return None if found is None else Range(found.low[channels], found.high[channels])
