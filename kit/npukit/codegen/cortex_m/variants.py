"""All kernels of a layer, and why the others do not apply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from npukit.codegen.cortex_m.add import add
from npukit.codegen.cortex_m.assembly import BYTE_WORTH
from npukit.codegen.cortex_m.block import Density
from npukit.codegen.cortex_m.border import copy_with_border
from npukit.codegen.cortex_m.convolution import convolution
from npukit.codegen.cortex_m.dense import dense
from npukit.codegen.cortex_m.depthwise import depthwise
from npukit.codegen.cortex_m.kernel import Kernel, Refusal
from npukit.codegen.cortex_m.layer import (
    AddLayer,
    ConvLayer,
    CopyLayer,
    DenseLayer,
    DepthwiseLayer,
    Layer,
    PoolLayer,
    SoftmaxLayer,
)
from npukit.codegen.cortex_m.layout import Layout, Order
from npukit.codegen.cortex_m.pool import pool
from npukit.codegen.cortex_m.softmax import softmax
from npukit.codegen.cortex_m.winograd import winograd


def variants(layer: Layer) -> list[Kernel | Refusal]:
    """Every variant between every pair of orders a layer could meet, inputs with the border its padding wants."""
    border = layer.padding if isinstance(layer, ConvLayer) else (0, 0, 0, 0)
    sources = [Layout(Order.PIXELS, layer.input_shape, border)]
    sources += [Layout(order, layer.input_shape) for order in (Order.PLANES8, Order.PLANES16)]
    targets = [Layout(order, layer.output_shape) for order in Order]
    if not isinstance(layer, ConvLayer | DepthwiseLayer):
        sources, targets = sources[:1], targets[:1]
    inputs = 2 if isinstance(layer, AddLayer) else 1
    pairs = product(sources, targets)
    return [found for source, target in pairs for found in kernels(layer, [source] * inputs, target)]


def kernels(
    layer: Layer, sources: Sequence[Layout], target: Layout, byte_worth: float = BYTE_WORTH
) -> Iterator[Kernel | Refusal]:
    """Every variant between the given layouts. `byte_worth` is what a byte of code must save."""
    match layer:
        case ConvLayer():
            yield from (convolution(layer, sources[0], target, density, byte_worth) for density in Density)
            yield winograd(layer, sources[0], target)
        case DepthwiseLayer():
            yield depthwise(layer, sources[0], target, byte_worth)
        case DenseLayer():
            yield from (dense(layer, sources[0], target, density, byte_worth) for density in Density)
        case AddLayer():
            yield add(layer, sources[0], sources[1], target)
        case PoolLayer():
            yield pool(layer, sources[0], target)
        case CopyLayer():
            yield copy_with_border(layer.name, sources[0], target, layer.zero_point)
        case SoftmaxLayer():
            yield softmax(layer, sources[0], target)
