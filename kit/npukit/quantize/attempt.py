"""Attempts to quantise a float model: the network made by a treatment, and the errors on the calibration data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError, nearest
from npukit.frontend.patterns import Patterns, matched
from npukit.frontend.shapes import StatePair, states_of
from npukit.net.importer import net_and_views
from npukit.net.importer.expressions import callee, shape_of
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.net.tensor import Quantization
from npukit.quantize.calibration import Calibration
from npukit.quantize.canonical import LINEAR, canonical, foldable, weight_axis
from npukit.quantize.choose import of_range
from npukit.quantize.floors import Floors, deep_softmaxes, floors, least_peaks
from npukit.quantize.four_bits import four_bits
from npukit.quantize.function import outputs, parameters, variables
from npukit.quantize.observe import ObservedRange, extremes, percentiles
from npukit.quantize.points import Points
from npukit.quantize.report import Layer, Report, closeness, compare
from npukit.quantize.rewrite import QdqModule, rewrite
from npukit.quantize.scales import Quantizer, quantised
from npukit.quantize.spread import NO_FACTORS, Factors, channel_peaks, read_by_dense, read_in_float, spread
from npukit.quantize.states import Frames, choose_tied, frames
from npukit.quantize.target.chains import Chain, chains, channel_axis, equalised, factors_of, twice, with_constants
from npukit.quantize.wide import Wide


@dataclass(frozen=True)
class KeptLayers:
    """The layers that stay in float in a network quantised here, by their names in the int8 network. Dense layers read
    the layers `in_int16` in 16 bits."""

    in_float: Sequence[str] = ()
    in_int16: Sequence[str] = ()


@dataclass(frozen=True)
class Treatment:
    """Steps of a quantisation. Results have their place among all quantised results of the float function, in order.
    `equalised`: power of the factors of channels; 0 for none. `ranges`: factors of ranges. `twice`: first results of
    chains with twice the steps. `in_float`: results in float, besides layers kept by the user; results of linear
    ops are the sums of integers."""

    keep: KeptLayers = KeptLayers()
    equalised: float = 0
    ranges: Mapping[int, float] = field(default_factory=dict)
    twice: frozenset[int] = frozenset()
    in_float: frozenset[int] = frozenset()

    def with_share(self, share: float, count: int) -> Treatment:
        """The treatment with a common factor of all ranges."""
        return replace(self, ranges=dict.fromkeys(range(count), share))

    def told(self) -> tuple[str, ...]:
        """The steps in words, for the whole network."""
        told = [f"channels equalised, power {self.equalised:g}"] if self.equalised else []
        counts = {"smaller range": self.ranges, "twice the steps": self.twice, "float": self.in_float}
        return (*told, *(f"{step}: {_results(len(places))}" for step, places in counts.items() if places))

    def done(self, place: int) -> tuple[str, ...]:
        """The steps for a result, in words."""
        told = [f"{self.ranges[place]:g} of the range"] if place in self.ranges else []
        told += ["twice the steps"] if place in self.twice else []
        return (*told, *(["float"] if place in self.in_float else []))

    def scaled(self, ranges: Mapping[Any, ObservedRange]) -> dict[Any, ObservedRange]:
        factors = (self.ranges.get(place, 1) for place in range(len(ranges)))
        pairs = zip(ranges.items(), factors, strict=True)
        return {each: ObservedRange(around.low * by, around.high * by) for (each, around), by in pairs}


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} results"


@dataclass(frozen=True)
class Attempt:
    """A network made by a treatment. `layers`: by float variable, whose values `seen` has in `order`."""

    treatment: Treatment
    net: Net
    layers: Mapping[Any, Layer]
    order: Sequence[Any]
    lowest: Floors
    seen: Frames

    def report(self) -> Report:
        """The errors of all layers over all cases."""
        cases = ((integers_of(self.net, inputs), self._values(values)) for inputs, values in self.seen)
        report = compare(self.net, list(self.layers.values()), cases, self.seen.data.labels)
        done = {layer.name: self.treatment.done(self.order.index(each)) for each, layer in self.layers.items()}
        return replace(report, layers=tuple(replace(each, done=done[each.name]) for each in report.layers))

    def _values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The float values of the layers, then of the first output. Floors hold for layers that int8 ops read."""
        lowest = self.lowest.values(self.order, values[:-1])
        known = {each: pair for each, *pair in zip(self.order, values, lowest, strict=False)}
        kept = ((layer, *known[each]) for each, layer in self.layers.items())
        return [low if layer.factors is None else value for layer, value, low in kept] + values[-1:]


@dataclass(frozen=True, eq=False)
class FloatModel:
    """A float model to quantise. `cut`: fraction of all values that a range omits at either end."""

    module: IRModule
    name: str
    data: Calibration
    cut: float
    quantizer: Quantizer
    patterns: Patterns
    narrow: bool = False
    """Weights of 4 bits in layers with enough accuracy."""

    @cached_property
    def points(self) -> Points:
        return self.points_of(canonical(self.module))

    def points_of(self, module: IRModule) -> Points:
        points = Points(module, self.quantizer).find()
        points.weights = four_bits(points, self.data, self.states) if self.narrow else {}
        return points

    @cached_property
    def states(self) -> Sequence[StatePair]:
        return states_of(self.module)

    @cached_property
    def seen(self) -> Frames:
        """The float model running over all cases."""
        return self.frames(self.points)

    def frames(self, points: Points) -> Frames:
        return frames(points.module, [*points.in_order(), outputs(points.module)[0]], self.data, self.states)

    def attempt(self, treatment: Treatment, cases: Collection[int] | None = None) -> Attempt:
        """The network made by a treatment. Ranges are those of the `cases`, by default of all."""
        points, seen = self.points, self.seen
        if changed := self.constants(treatment):
            points = self.points_of(with_constants(points.module, changed))
            seen = self.frames(points)
        order, keep = points.in_order(), treatment.keep
        part = seen if cases is None else replace(seen, data=self.data.part(cases))
        observed, lowest = self._observed(points, part)
        chosen = choose_tied(points, treatment.scaled(observed), self.states)
        net, layers = self._network(rewrite(points, chosen, lowest), order)
        if keep != KeptLayers() or treatment.in_float:
            own = [order[place] for place in treatment.in_float]
            in_int16 = dict(zip(keep.in_int16, self._named(layers, keep.in_int16), strict=True))
            computed = [each for each in own if not _is_linear(points, each)]
            kept = [*self._named(layers, keep.in_float), *in_int16.values(), *computed]
            in_int16 |= {each.name: each for each in read_by_dense(points, kept) if each in computed}
            wide, shared = Wide.of(points, kept, in_int16), read_by_dense(points, kept)
            ends = [each for each in own if each not in wide.results]
            read = [each for each in read_in_float(points, kept) if each not in (*wide.sums, *ends)]
            factors, ranges = spread(channel_peaks(part.values, order, [*read, *shared]), shared)
            divided = {each: of_range(points, each, around) for each, around in ranges.items()}
            written = rewrite(points, {**chosen, **divided}, lowest, kept, factors, wide, ends)
            net, layers = self._network(written, order, kept, factors)
        return Attempt(treatment, net, layers, order, lowest, seen)

    def constants(self, treatment: Treatment) -> dict[Any, np.ndarray]:
        """The weights and biases changed by a treatment."""
        made = dict[Any, np.ndarray]()
        if treatment.equalised:
            for chain, factors in self._factors(treatment.equalised):
                made |= equalised(self.points, chain, factors, made)
        if treatment.twice:
            places, steps = self.points.in_order(), self.steps(treatment)
            for chain in self.chains:
                if places.index(chain.first) in treatment.twice:
                    made |= twice(self.points, chain, steps[chain.first].scale, made)
        return made

    def steps(self, treatment: Treatment) -> dict[Any, Quantization]:
        """The quantisation of each result, over the cases not held back."""
        ranges = dict(self._calibrated)
        for chain, factors in self._factors(treatment.equalised) if treatment.equalised else ():
            for each in filter(self._ends.__contains__, chain.between):
                low, high = (ends / factors for ends in self._ends[each])
                ranges[each] = ObservedRange(float(low.min()), float(high.max()))
        return choose_tied(self.points, treatment.scaled(ranges), self.states)

    def tail(self, result: Any) -> frozenset[int] | None:
        """The places of a result and of all results computed from it, up to outputs and dense layers. None if they have
        much work in float."""
        points, found, todo = self.points, dict[Any, None](), [result]
        states = {outputs(points.module)[state.output] for state in self.states}
        while todo:
            variable = todo.pop()
            found[variable] = None
            readers = [reader for reader, value in points.values.items() if variable in variables(value)]
            products = [each for each in readers if callee(points.values[each]) in LINEAR]
            read = all(foldable(points.values[each]) and callee(points.values[each]) == "matmul" for each in products)
            alone = not (products and _is_linear(points, variable))
            if variable in states or _size(variable) > MOST_IN_FLOAT or not (read and alone):
                return None
            todo += [each for each in readers if each not in (*found, *products) and callee(points.values[each])]
        return frozenset(place for place, each in enumerate(points.in_order()) if each in found)

    @cached_property
    def chains(self) -> list[Chain]:
        return list(chains(self.points))

    @cached_property
    def _part(self) -> Frames:
        """The float model running over the cases not held back."""
        return replace(self.seen, data=self.data.part(self.calibrating))

    @cached_property
    def _calibrated(self) -> dict[Any, ObservedRange]:
        return self._observed(self.points, self._part)[0]

    @cached_property
    def _ends(self) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """The least and the largest value of each channel of the results in chains."""
        found, order = dict[Any, tuple[np.ndarray, np.ndarray]](), self.points.in_order()
        axes = {each: channel_axis(self.points, chain) for chain in self.chains for each in chain.between}
        places = {each: order.index(each) for each in axes if each in self.points.quantised}
        for values in self._part.values:
            for each, place in places.items():
                rows = np.moveaxis(values[place], axes[each], 0).reshape(values[place].shape[axes[each]], -1)
                low, high = found.get(each, (np.inf, -np.inf))
                found[each] = np.minimum(low, rows.min(axis=1)), np.maximum(high, rows.max(axis=1))
        return found

    def _factors(self, power: float) -> Iterator[tuple[Chain, np.ndarray]]:
        """The chains whose channels can be scaled, with the channels' factors."""
        for chain in self.chains:
            if chain.scalable:
                low, high = self._ends[chain.first]
                yield chain, factors_of(np.maximum(-low, high), power)

    def _observed(self, points: Points, seen: Frames) -> tuple[dict[Any, ObservedRange], Floors]:
        """The ranges of the quantised variables, and the floors of all."""
        order, whole = points.in_order(), extremes(seen.values)
        found = dict(zip(order, whole, strict=False))
        lowest = floors(points, found, _peaks(points, seen, deep_softmaxes(points, found)))
        found = lowest.ranges(found)
        if self.cut:
            found = dict(zip(order, percentiles(seen.values, [*found.values(), whole[-1]], self.cut), strict=False))
        return found, lowest

    def _network(
        self, written: QdqModule, order: Sequence[Any], kept: Collection[Any] = (), factors: Factors = NO_FACTORS
    ) -> tuple[Net, dict[Any, Layer]]:
        """The network, and the layers by float variable."""
        in_float = frozenset(written.integers[each] for each in kept if each in written.integers)
        matches = matched(written.module, self.patterns)
        net, views = net_and_views(written.module, self.name, kept=in_float, matched=matches)
        made, layers = {op.output for op in net.ops}, dict[Any, Layer]()
        for variable in order:
            view: Any = views[written.integers[variable]] if variable in written.integers else None
            if view is not None and view.name in made:
                layers[variable] = Layer(view.name, tuple(map(int, np.argsort(view.order))), factors.get(variable))
        return net, layers

    def _named(self, layers: Mapping[Any, Layer], names: Sequence[str]) -> list[Any]:
        """The variables of the named layers and inputs."""
        known = {layer.name: variable for variable, layer in layers.items()}
        known |= {each.name: each for each in parameters(self.points.module) if each in self.points.quantised}
        unknown = [name for name in names if name not in known]
        if unknown:
            tries = [*nearest(unknown[0], known), "its layers are: " + ", ".join(known)]
            raise NpukitError(f"{self.name} has no layer {unknown[0]!r}", tries=tries)
        return [known[name] for name in names]

    @cached_property
    def calibrating(self) -> list[int]:
        """The cases not held back; all if there is a single case."""
        return [case for case in range(self.data.count) if case not in self.held_back] or [0]

    @cached_property
    def held_back(self) -> list[int]:
        """The cases to measure with: each fourth, the last of few, and the last quarter of a stream."""
        count = self.data.count
        if self.states:
            return list(range(count - max(count // HELD_BACK_OF, 1), count))
        return list(range(HELD_BACK_OF - 1, count, HELD_BACK_OF)) or [count - 1]

    @cached_property
    def expected(self) -> list[list[np.ndarray]]:
        """The float model's outputs for the cases held back, without states."""
        module = self.points.module
        seen = frames(module, outputs(module), self.data, self.states)
        return [self.shown(values) for _, values in seen.some(self.held_back)]

    def shown(self, values: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The float outputs among all outputs, without states."""
        states = {state.output for state in self.states}
        return [each for at, each in enumerate(values) if at not in states and each.dtype.kind == "f"]

    def reached(self, net: Net) -> float:
        """The signal-to-error ratio of the network's outputs over the cases held back, in decibels: of the worst
        output. A stream is computed from its first frame, with the network's own states."""
        return closeness(self.expected, self._outputs_of(net))

    def _outputs_of(self, net: Net) -> Iterator[list[np.ndarray]]:
        """The network's outputs for the cases held back."""
        left, cases = dict[int, np.ndarray](), self.data.part(range(self.data.count) if self.states else self.held_back)
        skipped = cases.count - len(self.held_back)
        for number, case in enumerate(cases.cases()):
            given = iter(case)
            starts = {state.input: state.initial for state in self.states}
            reals = [starts[at] if at in starts else next(given) for at in range(len(net.inputs))]
            taken = [left.get(at, value) for at, value in enumerate(integers_of(net, reals))]
            values = evaluate(net, taken)
            left = {state.input: values[net.outputs[state.output]] for state in self.states}
            if number >= skipped:
                yield self.shown([_real(values[name], net.tensor(name).quantization) for name in net.outputs])


MOST_IN_FLOAT = 4096
"""Most values of a result in float without a wish of the user."""
HELD_BACK_OF = 4
"""A case of this many is held back."""


def _size(variable: Any) -> int:
    """The count of a result's values; for several results together, too many."""
    return MOST_IN_FLOAT + 1 if isinstance(variable.ty, relax.TupleType) else prod(shape_of(variable))


def _peaks(points: Points, seen: Frames, softmaxes: Sequence[Any]) -> dict[Any, float]:
    """The least of all rows' largest values, by softmax."""
    if not softmaxes:
        return {}
    calls = [points.values[each] for each in softmaxes]
    given = frames(points.module, [call.args[0] for call in calls], seen.data, seen.states)
    return dict(zip(softmaxes, least_peaks(given.values, calls), strict=True))


def _is_linear(points: Points, variable: Any) -> bool:
    return any(foldable(points.values.get(part)) for part in points.parts(variable))


def terms(call: Any) -> int:
    """The products in each sum of a linear op."""
    shape = shape_of(call.args[1])
    return prod(shape) // shape[weight_axis(call, len(shape))]


def integers_of(net: Net, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Float inputs in the types of the net's inputs."""
    kinds = (net.tensor(name).quantization for name in net.inputs)
    return [array if kind is None else quantised(array, kind) for array, kind in zip(inputs, kinds, strict=True)]


def _real(values: np.ndarray, given: Quantization | None) -> np.ndarray:
    return values if given is None else (values.astype(np.float64) - given.zero_point) * given.scale
