"""Products with a constant by channel, and PReLUs, as depthwise convolutions of one pixel, where an engine takes them.

A channel's factor becomes a weight and a scale with equal results for all 256 values. Both ops round twice, but a
factor beyond int8 takes another multiplier than the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Add, Attributes, DepthwiseConv2d, Multiply, Pair, Prelu, Reshape
from npukit.net.passes.simplify import without_unread
from npukit.net.requantize import Multiplier, multiplier_for, product_rescaling, quantization, rescale
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization, Tensor

_LARGEST, _LEAST = 127, 64
"""Limits of the weights tried for a factor beyond int8: smaller weights leave fewer bits for the first rounding."""
_NEGATIVE = 127
"""The zero point of a tensor of the negative differences from a zero point."""


def with_filters_by_channel(net: Net, taken: Callable[[Net, Op], bool]) -> Net:
    """The net with depthwise convolutions for ops by channel. `taken`: True if an accelerator takes an op."""
    for op in net.ops:
        made = _made(net, op) if _is_by_channel(net, op) and not taken(net, op) else None
        filters = (each for each in made.ops if isinstance(each.attributes, DepthwiseConv2d)) if made else ()
        if made and all(each in net.ops or taken(made, each) for each in filters):
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
        and not (len(shape) == 4 and shape[0] > 1)
        and channels == shape[-1:]
        and net.tensor(held[0]).elements == prod(channels) > 1
    )


def _made(net: Net, op: Op) -> Net | None:
    """The net with filters in place of the op; None if a channel has no weight with equal results."""
    filters = _weights(net, op)
    if filters is None:
        return None
    draft = _Draft(net, op)
    draft.rewritten(*filters)
    ops = tuple(new for each in net.ops for new in (draft.ops if each is op else [each]))
    return replace(net, ops=ops, tensors=draft.tensors, constants=draft.constants)


@dataclass(frozen=True)
class _Factor:
    """The rescaled products of values without zero point and an integer factor. `zero` and `clamp`: of the results."""

    values: np.ndarray
    real: float
    zero: int
    clamp: Pair

    def results(self, factor: int, scaling: Multiplier) -> np.ndarray:
        return np.clip(rescale(self.values * factor, scaling) + self.zero, *self.clamp)


def _weights(net: Net, op: Op) -> tuple[np.ndarray, tuple[float, ...]] | None:
    """The weight and the scale of each channel; None if a channel has none."""
    held, scaling = next(name for name in op.inputs if name in net.constants), product_rescaling(net, op)
    source, made, step = (quantization(net, name) for name in (next(net.activations(op)), op.output, held))
    values = EVERY - source.zero_point
    if isinstance(op.attributes, Prelu):
        values = np.minimum(values, 0)
    clamp = op.attributes.clamp if isinstance(op.attributes, Multiply) else (-128, 127)
    factors = net.constants[held].ravel().astype(np.int64) - step.zero_point
    found = []
    for factor in factors.tolist():
        wanted = _Factor(values, source.scale / made.scale, made.zero_point, clamp)
        expected = wanted.results(factor, scaling)
        pairs = _candidates(factor, step.scale)
        found.append(next((pair for pair in pairs if _equals(expected, wanted, source, made, *pair)), None))
    if None in found:
        return None
    weights, scales = zip(*filter(None, found), strict=True)
    return np.array(weights, np.int8).reshape(1, 1, 1, -1), scales


def _equals(
    expected: np.ndarray, wanted: _Factor, source: Quantization, made: Quantization, weight: int, scale: float
) -> bool:
    """True if a filter's results with a weight and a scale are the expected ones."""
    scaling = multiplier_for(source.scale * scale / made.scale)
    return np.array_equal(expected, wanted.results(weight, scaling))


def _candidates(factor: int, scale: float) -> Iterator[tuple[int, float]]:
    """Weights for a factor, with their scales."""
    if abs(factor) <= _LARGEST:
        yield factor, scale
    sign = 1 if factor > 0 else -1
    for weight in range(_LARGEST, _LEAST - 1, -1) if factor else ():
        yield sign * weight, scale * abs(factor) / weight


class _Draft:
    """The ops in place of an op, with their tensors and constants."""

    def __init__(self, net: Net, op: Op) -> None:
        self.tensors, self.constants = dict(net.tensors), dict(net.constants)
        self.ops: list[Op] = []
        self._op, self._source = op, net.tensor(next(net.activations(op)))
        self._output = net.tensor(op.output)
        shape = self._output.shape
        self._image = shape if len(shape) == 4 else (1, prod(shape[:-1]), 1, shape[-1])

    def rewritten(self, weights: np.ndarray, scales: tuple[float, ...]) -> None:
        """Add the ops."""
        source, output = self._source.quantization, self._output.quantization
        assert source is not None
        assert output is not None
        image = self._reshaped(self._source.name, self._image)
        if isinstance(self._op.attributes, Multiply):
            made = self._filter("product", image, output, weights, scales, self._op.attributes.clamp)
        else:
            ones, alike = np.ones_like(weights), (1.0,) * len(scales)
            below = Quantization(source.scales, (_NEGATIVE,))
            negative = self._filter("negative", image, below, ones, alike, (-128, 127))
            positive = self._filter("positive", image, output, ones, alike, (output.zero_point, 127))
            sloped = self._filter("sloped", negative, output, weights, scales, (-128, 127))
            made = self._add("sum", Add(), (sloped, positive), output)
        self._finish(made)

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        tensor = self.tensors[name]
        if tensor.shape == shape:
            return name
        return self._add("image", Reshape(), (name,), tensor.quantization)

    def _filter(
        self, role: str, source: str, made: Quantization, weights: np.ndarray, scales: tuple[float, ...], clamp: Pair
    ) -> str:
        """Add a depthwise convolution of one pixel."""
        name = f"{self._op.name}_{role}_weights"
        zeros = (0,) * len(scales)
        self.tensors[name] = Tensor(name, weights.shape, "int8", Quantization(scales, zeros, 3))
        self.constants[name] = weights
        return self._add(role, DepthwiseConv2d(clamp=clamp), (source, name), made)

    def _add(self, role: str, attributes: Attributes, inputs: tuple[str, ...], made: Quantization | None) -> str:
        name = f"{self._op.name}_{role}"
        self.tensors[name] = Tensor(name, self._image, "int8", made)
        self.ops.append(Op(name, attributes, inputs, (name,)))
        return name

    def _finish(self, made: str) -> None:
        """Give the last op the name and the output of the replaced op, behind a reshape if shapes differ."""
        if self._image != self._output.shape:
            self.ops.append(replace(self._op, attributes=Reshape(), inputs=(made,)))
            return
        last = self.ops.pop()
        self.ops.append(replace(last, name=self._op.name, outputs=self._op.outputs))
        del self.tensors[made]
