"""Layers whose weights are not symmetric int8, such as uint8 with a zero point, as equal layers with int8 weights.

Minus the zero point, a weight has 9 bits. Only few weights of a layer exceed int8, all at one end of the range. Each
becomes a sum of two or three int8 weights, and its input channel is duplicated to match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView, Order
from npukit.net.importer.expressions import IntegerConstant
from npukit.net.importer.site import Site
from npukit.net.ops import Concat, Conv2d, DepthwiseConv2d, Slice
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

MOST_MERGED = 16
"""Maximum channels of a depthwise convolution computed by one convolution, with as many weights per channel."""


def symmetric(weights: IntegerConstant) -> IntegerConstant:
    """Weights minus their zero point: in int8, or in int16 if out of int8's range."""
    given = weights.quantization
    moved = weights.value.astype(np.int64) - given.arrays(weights.value.ndim)[1]
    if weights.value.dtype not in (np.int8, np.uint8):
        raise _not_symmetric()
    held = np.int8 if moved.min() >= -128 and moved.max() <= 127 else np.int16
    return IntegerConstant(moved.astype(held), Quantization(given.scales, (0,) * len(given.scales), given.axis))


def _not_symmetric() -> NpukitError:
    return NpukitError("its weights are not symmetric int8", tries=["quantise with symmetric weights (zero point 0)"])


def in_int8(walk: Walk, data: str, weights: IntegerConstant) -> tuple[str, IntegerConstant]:
    """The activation and int8 weights of an equal layer. Input channels are the last axis of both."""
    value = weights.value
    if value.dtype == np.int8:
        return data, weights
    if value.shape[-1] != walk.assembly.shape(data)[-1]:
        raise _not_symmetric()
    names, parts, rest = [data], [_nearest(value)], value - _nearest(value)
    while rest.any():
        for part in _runs(np.flatnonzero(rest.any(axis=tuple(range(value.ndim - 1)))), value.shape[-1] // 16):
            names.append(_channels(walk, data, part))
            parts.append(_nearest(rest[..., part.start : part.stop]))
        rest = rest - _nearest(rest)
    return _concat(walk, names), IntegerConstant(np.concatenate(parts, -1), weights.quantization)


def _nearest(value: np.ndarray) -> np.ndarray:
    return np.clip(value, -128, 127).astype(np.int8)


def _runs(places: Iterable[int], gap: int) -> Iterator[range]:
    """Ranges that cover all places. Gaps shorter than `gap` are included."""
    first, *others = map(int, places)
    for before, place in pairwise([first, *others]):
        if place - before > max(gap, 1):
            yield range(first, before + 1)
            first = place
    yield range(first, [first, *others][-1] + 1)


def _channels(walk: Walk, data: str, part: range) -> str:
    """A slice of the channels, the last axis."""
    shape = walk.assembly.shape(data)
    if len(part) == shape[-1]:
        return data
    begin, end = (0,) * (len(shape) - 1) + (part.start,), (*shape[:-1], part.stop)
    return walk.assembly.derive(Slice(begin, end, (1,) * len(shape)), data, (*shape[:-1], len(part)))


def _concat(walk: Walk, parts: Sequence[str]) -> str:
    tensors = [walk.assembly.tensors[part] for part in parts]
    shape = (*tensors[0].shape[:-1], sum(each.shape[-1] for each in tensors))
    return walk.assembly.op(Concat(len(shape) - 1), parts, shape, tensors[0].dtype, tensors[0].quantization)


@dataclass(frozen=True)
class LayerOperands:
    """The operands of a layer. Input channels are the last axis of the weights."""

    data: str
    weights: IntegerConstant
    bias: np.ndarray | None

    def inputs(self, walk: Walk, name: str) -> tuple[str, ...]:
        """The input names of op `name`. Adds its constants."""
        weights = walk.assembly.constant(f"{name}_weights", self.weights.value, self.weights.quantization)
        biases = () if self.bias is None else (walk.assembly.constant(f"{name}_bias", self.bias, None),)
        return self.data, weights, *biases


@dataclass(frozen=True)
class Depthwise:
    """A depthwise convolution in int8. Channels with wider weights are computed by convolutions."""

    walk: Walk
    site: Site
    kind: DepthwiseConv2d
    layer: LayerOperands
    order: Order

    def view(self) -> AxesView:
        """The result's view. Adds all ops to the net."""
        value = self.layer.weights.value
        wrong = np.flatnonzero(((value < -128) | (value > 127)).any(axis=(0, 1, 2)))
        channels = self.walk.assembly.shape(self.layer.data)[-1]
        if channels != value.shape[-1]:
            raise _not_symmetric()
        alone = [part[at : at + MOST_MERGED] for part in _runs(wrong, 1) for at in range(0, len(part), MOST_MERGED)]
        begins, ends = [0, *(part.stop for part in alone)], [*(part.start for part in alone), channels]
        kept = [range(*pair) for pair in zip(begins, ends, strict=True) if pair[0] < pair[1]]
        weights = replace(self.layer.weights, value=_nearest(self.layer.weights.value))
        whole = self._made(self.kind, replace(self.layer, weights=weights)) if kept else ""
        parts = {part.start: _channels(self.walk, whole, part) for part in kept}
        parts |= {part.start: self._alone(part) for part in alone}
        return self.walk.add_image(self.site, Concat(3), [parts[start] for start in sorted(parts)], self.order)

    def _alone(self, part: range) -> str:
        """A convolution equal to the depthwise one on a few channels, with zero weights between different channels."""
        given, few = self.layer.weights.quantization, slice(part.start, part.stop)
        scales = given.scales if given.axis is None else given.scales[few]
        quantization = Quantization(scales, (0,) * len(scales), None if given.axis is None else 0)
        across = self.layer.weights.value[0, :, :, few].transpose(2, 0, 1)[..., None]
        square = IntegerConstant(across * np.eye(len(part), dtype=np.int16)[:, None, None], quantization)
        data, weights = in_int8(self.walk, _channels(self.walk, self.layer.data, part), square)
        kind = Conv2d(self.kind.strides, self.kind.padding, self.kind.dilation, self.kind.clamp)
        return self._made(kind, LayerOperands(data, weights, None if self.layer.bias is None else self.layer.bias[few]))

    def _made(self, kind: Conv2d | DepthwiseConv2d, layer: LayerOperands) -> str:
        """The op for the channels of its weights."""
        name, value = self.walk.assembly.new_name(kind.kind), layer.weights.value
        images, *place, _ = (self.site.shape[axis] for axis in self.order)
        channels = value.shape[0 if isinstance(kind, Conv2d) else -1]
        shape = (images, *([1] if len(place) == 1 else []), *place, channels)
        inputs = layer.inputs(self.walk, name)
        return self.walk.assembly.op(kind, inputs, shape, self.site.dtype, self.site.quantization, name)
