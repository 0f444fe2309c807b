"""Functions of a byte that lie on a line, as depthwise convolutions of one pixel: weight, bias and scale of a channel.

The values beyond the ends of a line are clamped. Any line between the halves around all results gives these results;
the middle of all such lines is the safest from the filter's roundings. Tables made by two roundings may need the very
factor that made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, prod
from typing import NamedTuple

import numpy as np

from npukit.net.net import CORE, NO_WORK, Net, Op
from npukit.net.ops import Attributes, DepthwiseConv2d, Lookup, Pair, Reshape, Select
from npukit.net.passes.simplify import without_unread
from npukit.net.requantize import WEIGHTS_OF_A_LINE, factor_of_products, rescale
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization, Tensor

_STEEPEST = 64.0
"""The steepest line tried, in results for a step of the input."""
_THIRDS = 60
"""Thirds cut off the range of slopes, one after the other."""
_LEAST_PIXELS = 16
"""Pixels from which on the constants of a filter are worth their bytes: a byte of a channel for a byte of a pixel."""
_NUMBERS = Quantization((1.0,), (0,))

Faster = Callable[[Net, Op, Net, Op], str | None]
"""A function of a net with an op, and of a net with another op: the accelerator that computes the second faster, or
None."""


Factor = tuple[int, float]
"""A weight and its scale."""
AS_IT_IS: Factor = (1, 1.0)


class LineFilter(NamedTuple):
    """The weights, biases and scales of channels."""

    weights: Sequence[int]
    biases: Sequence[int]
    scales: Sequence[float]

    def repeated(self, channels: int) -> LineFilter:
        """The filter of a number for channels."""
        times = channels // len(self.weights)
        return LineFilter([*self.weights] * times, [*self.biases] * times, [*self.scales] * times)

    def inputs(self, name: str) -> Iterator[tuple[Tensor, np.ndarray]]:
        """The constants of a convolution with a name."""
        given = Quantization(tuple(self.scales), (0,) * len(self.scales), 3)
        shaped = np.array(self.weights, np.int8).reshape(1, 1, 1, -1)
        yield Tensor(f"{name}_weights", shaped.shape, "int8", given), shaped
        if any(self.biases):
            yield Tensor(f"{name}_bias", (len(self.biases),), "int32"), np.array(self.biases, np.int32)


@dataclass(frozen=True)
class Ends:
    """The quantisation of input and output, and the clamp."""

    source: Quantization
    made: Quantization
    clamp: Pair
    rounds_once: bool = False

    def results(self, weight: int, bias: int, scale: float) -> np.ndarray:
        """The results of a channel of a filter for all bytes."""
        factor = factor_of_products(self.source.scale * scale / self.made.scale, self.rounds_once)
        moved = rescale((EVERY - self.source.zero_point) * weight + bias, factor) + self.made.zero_point
        return np.clip(moved, *self.clamp)


def line_filter(tables: np.ndarray, ends: Ends, factors: Sequence[Factor]) -> LineFilter | None:
    """The filter with the results `tables` [channels, 256] of all bytes; None if a channel has none. `factors`: weights
    and scales to try before others."""
    found = []
    slopes, offsets = _lines(tables, ends.clamp)
    for table, factor, slope, offset in zip(tables, factors, slopes, offsets, strict=True):
        ways = _ways(table, ends, factor, (slope, offset))
        way = next((each for each in ways if np.array_equal(ends.results(*each), table)), None)
        if way is None:
            return None
        found.append(way)
    return LineFilter(*zip(*found, strict=True))


def _ways(table: np.ndarray, ends: Ends, factor: Factor, line: tuple[float, float]) -> Iterator[tuple[int, int, float]]:
    """Weights, biases and scales to try for a channel with a line."""
    (weight, scale), (slope, offset) = factor, line
    if abs(weight) <= WEIGHTS_OF_A_LINE[0]:
        yield weight, 0, scale
    if isnan(offset):
        return
    from_zero = offset + slope * ends.source.zero_point - ends.made.zero_point
    for weight in WEIGHTS_OF_A_LINE:
        unit = abs(slope) / weight or 1.0
        signed, bias = int(weight * np.sign(slope)), round(from_zero / unit)
        for moved in (bias, bias - 1, bias + 1):
            unit = _unit(table, ends, signed, moved)
            if unit > 0:
                yield signed, moved, unit * ends.made.scale / ends.source.scale


def _unit(table: np.ndarray, ends: Ends, weight: int, bias: int) -> float:
    """The middle of the factors with which sums become the results before rounding; 0 if there is none."""
    sums, clamp = (EVERY - ends.source.zero_point) * weight + bias, ends.clamp
    low, high = (limits - ends.made.zero_point for limits in _limits(table, clamp))
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = (np.where(sums > 0, one, other) / sums for one, other in ((low, high), (high, low)))
    within = sums != 0
    least, most = np.max(least[within], initial=0), np.min(most[within], initial=_STEEPEST)
    return float(least + most) / 2 if least < most else 0.0


def _limits(tables: np.ndarray, clamp: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The halves below and above the results; none beyond the clamp."""
    lowest = np.where(tables > clamp[0], tables - 0.5, -np.inf)
    return lowest, np.where(tables < clamp[1], tables + 0.5, np.inf)


def _lines(tables: np.ndarray, clamp: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The slope and the offset of the middle line of each channel; an offset is NaN if there is none.

    The room between the lowest and the highest offset is a concave function of the slope.
    """
    lowest, highest = _limits(tables, clamp)

    def offsets(slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        along = slopes[:, None] * EVERY
        return (lowest - along).max(axis=1), (highest - along).min(axis=1)

    least, most = np.full(len(tables), -_STEEPEST), np.full(len(tables), _STEEPEST)
    for _ in range(_THIRDS):
        thirds = least + (most - least) / 3, most - (most - least) / 3
        rising = np.less(*(np.subtract(*offsets(slopes)[::-1]) for slopes in thirds))
        least, most = np.where(rising, thirds[0], least), np.where(rising, most, thirds[1])
    constant = (tables == tables[:, :1]).all(axis=1)
    slopes = np.where(constant, 0, (least + most) / 2)
    low, high = offsets(slopes)
    middle = np.where(np.isfinite(low) & np.isfinite(high) & (low < high), (low + high) / 2, np.nan)
    return slopes, np.where(constant, tables[:, 0], middle)


# ---- ops in place of an op ----


class Draft:
    """The ops in place of an op, with their tensors and constants."""

    def __init__(self, net: Net, op: Op) -> None:
        self.tensors, self.constants = dict(net.tensors), dict(net.constants)
        self.ops: list[Op] = []
        self._net, self._op = net, op
        self._output = net.tensor(op.output)
        shape = self._output.shape
        self._image = shape if len(shape) == 4 else (1, prod(shape[:-1]), 1, shape[-1])

    @property
    def image(self) -> str:
        """The op's activation as an image."""
        source = self.tensors[next(self._net.activations(self._op))]
        if source.shape == self._image:
            return source.name
        return self.add("image", Reshape(), (source.name,), source.quantization)

    def filter(self, role: str, source: str, made: Quantization, filters: LineFilter, clamp: Pair) -> str:
        """Add a depthwise convolution of one pixel."""
        inputs = [source]
        for tensor, values in filters.inputs(f"{self._op.name}_{role}"):
            self.tensors[tensor.name], self.constants[tensor.name] = tensor, values
            inputs.append(tensor.name)
        return self.add(role, DepthwiseConv2d(clamp=clamp), tuple(inputs), made)

    def add(self, role: str, attributes: Attributes, inputs: tuple[str, ...], made: Quantization | None) -> str:
        """Add an op with the shape of the image."""
        name = f"{self._op.name}_{role}"
        self.tensors[name] = Tensor(name, self._image, "int8", made)
        self.ops.append(Op(name, attributes, inputs, (name,)))
        return name

    def finished(self, made: str) -> Net:
        """The net with the ops. The last op gets the name and the output of the replaced op, behind a reshape if shapes
        differ."""
        if self._image != self._output.shape:
            self.ops.append(replace(self._op, attributes=Reshape(), inputs=(made,)))
        else:
            last = self.ops.pop()
            self.ops.append(replace(last, name=self._op.name, outputs=self._op.outputs))
            del self.tensors[made]
        ops = tuple(new for each in self._net.ops for new in (self.ops if each is self._op else [each]))
        return replace(self._net, ops=ops, tensors=self.tensors, constants=self.constants)


def is_one_image(shape: tuple[int, ...]) -> bool:
    """True if a filter of one pixel reads a tensor of a shape as an image."""
    return bool(shape) and not (len(shape) == 4 and shape[0] > 1)


# ---- lookups ----


def with_lines(net: Net, faster: Faster) -> Net:
    """The net with filters for the core's lookups whose tables are lines, where an accelerator is faster."""
    for op in net.ops:
        made = _of_lookup(net, op) if op.engine == CORE and isinstance(op.attributes, Lookup) else None
        found = next((each for each in made.ops if _is_new(net, each)), None) if made else None
        if made and found and (engine := faster(net, op, made, found)):
            net = without_unread(made.with_ops(tuple(_placed(net, each, engine) for each in made.ops)))
    return net


def _is_new(net: Net, op: Op) -> bool:
    return isinstance(op.attributes, DepthwiseConv2d) and op not in net.ops


def _placed(net: Net, op: Op, engine: str) -> Op:
    """A filter on its engine, and a reshape as no work."""
    if _is_new(net, op):
        return op.placed(engine)
    return op if op in net.ops else op.placed(CORE, NO_WORK)


def _of_lookup(net: Net, op: Op) -> Net | None:
    """The net with a filter in place of a lookup; None if the table is no line. Conditions become int8."""
    source, output = net.tensor(op.inputs[0]), net.tensor(op.output)
    conditional = output.dtype == "bool"
    given, made = source.quantization, _NUMBERS if conditional else output.quantization
    if given is None or made is None or source.dtype != "int8" or not is_one_image(source.shape):
        return None
    if source.elements < _LEAST_PIXELS * source.shape[-1] or (conditional and not _only_selects(net, output.name)):
        return None
    tables = net.constants[op.inputs[1]].astype(np.int64).reshape(-1, len(EVERY))
    clamp = int(tables.min()), int(tables.max())
    found = line_filter(tables, Ends(given, made, clamp, net.rounds_once), [AS_IT_IS] * len(tables))
    if found is None:
        return None
    if conditional:
        net = replace(net, tensors={**net.tensors, output.name: replace(output, dtype="int8", quantization=made)})
    draft = Draft(net, op)
    return draft.finished(draft.filter("line", draft.image, made, found.repeated(source.shape[-1]), clamp))


def _only_selects(net: Net, name: str) -> bool:
    """True if a tensor is only read as the condition of selections."""
    readers = [op for op in net.ops if name in op.inputs]
    alone = all(
        isinstance(op.attributes, Select) and op.inputs.count(name) == 1 and op.inputs[0] == name for op in readers
    )
    return alone and name not in net.ends
