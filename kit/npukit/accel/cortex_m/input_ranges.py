"""The values that each layer of a network can find in its input, as the layers before it imply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npukit.accel.cortex_m.layer import ConvLayer, CopyLayer, DenseLayer, DepthwiseLayer, PoolLayer, Range
from npukit.accel.cortex_m.network import Node
from npukit.accel.cortex_m.ranges import output_range


def with_ranges(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes with the range of each layer's input."""
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
        elif isinstance(layer, CopyLayer | PoolLayer) and found is not None:
            ranges[index] = found
    return tuple(result)


def _repeated(found: Range, channels: int) -> Range:
    """A range of channels as that of a flattened tensor."""
    times = channels // len(found.low)
    return Range(np.tile(found.low, times), np.tile(found.high, times))
