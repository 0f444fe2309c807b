"""All kernels of a layer, and the reasons against the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npukit.accel.cortex_m.code.assembly import USUAL_WORTH, CodeWorth
from npukit.accel.cortex_m.code.block import Density
from npukit.accel.cortex_m.kernel import Kernel, Refusal
from npukit.accel.cortex_m.kernels import helium
from npukit.accel.cortex_m.kernels.add import add
from npukit.accel.cortex_m.kernels.border import copy_with_border
from npukit.accel.cortex_m.kernels.convolution import convolution
from npukit.accel.cortex_m.kernels.dense import dense
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.kernels.pool import pool
from npukit.accel.cortex_m.kernels.to_planes import copy_to_planes
from npukit.accel.cortex_m.kernels.winograd import winograd
from npukit.accel.cortex_m.layout import Layout
from npukit.accel.cortex_m.op_view import OpView
from npukit.net.ops import Add, AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Reshape, Subtract


def kernels(
    layer: OpView, sources: Sequence[Layout], target: Layout, worth: CodeWorth = USUAL_WORTH
) -> Iterator[Kernel | Refusal]:
    """Every variant between the given layouts. `worth`: the time that code must save."""
    if layer.helium and isinstance(layer.attributes, Conv2d | Dense):
        yield helium.products(layer, sources[0], target, worth)
    if layer.helium and isinstance(layer.attributes, DepthwiseConv2d):
        yield helium.depthwise(layer, sources[0], target)
    match layer.attributes:
        case Conv2d():
            yield from (convolution(layer, sources[0], target, density, worth) for density in Density)
            yield winograd(layer, sources[0], target, worth)
        case Dense() if layer.rows > 1:
            yield from (convolution(layer, sources[0], target, density, worth) for density in Density)
        case DepthwiseConv2d():
            yield depthwise(layer, sources[0], target, worth)
        case Dense():
            yield from (dense(layer, sources[0], target, density, worth) for density in Density)
        case Add() | Subtract():
            yield add(layer, sources[0], sources[1], target)
        case AveragePool() | MaxPool():
            yield pool(layer, sources[0], target)
        case Reshape():
            yield copy_with_border(layer.name, sources[0], target, layer.input_zero)
            yield copy_to_planes(layer.name, sources[0], target, layer.input_zero)
