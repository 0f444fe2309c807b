"""Attempts to quantise a float model: the network made by a treatment, and the errors on the calibration data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from npukit.net.importer.expressions import callee, shape_of, title_of, titles_of
from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.net.tensor import Quantization, along
from npukit.quantize.calibration import Calibration
from npukit.quantize.canonical import LINEAR, canonical, foldable, weight_axis
from npukit.quantize.choose import of_range
from npukit.quantize.floors import Floors, deep_softmaxes, floors, least_peaks, softmaxes
from npukit.quantize.function import outputs, parameters
from npukit.quantize.observe import ObservedRange, extremes, percentiles
from npukit.quantize.plateaus import plateaus
from npukit.quantize.points import Points
from npukit.quantize.report import Layer, Report, closeness, compare
from npukit.quantize.rewrite import QdqRewriting
from npukit.quantize.rounding import IN_INT4, IN_INT8, Rounding, roundings
from npukit.quantize.scales import Quantizer, quantised
from npukit.quantize.spread import channel_peaks, read_by_dense, read_in_float, spread
from npukit.quantize.states import Frames, choose_tied, frames
from npukit.quantize.target.chains import Chain, Constants, chains, twice, weights_of, with_constants
from npukit.quantize.target.groups import TiedChannels, equalised, factors_of, groups
from npukit.quantize.target.treatment import FOUR_BITS, KeptLayers, Treatment
from npukit.quantize.wide import Wide


@dataclass(frozen=True)
class Attempt:
    """A network made by a treatment. `layers`: by float variable, whose values `seen` has in `order`. `narrow`: results
    of layers with weights of 4 bits."""

    treatment: Treatment
    net: Net
    layers: Mapping[Any, Layer]
    order: Sequence[Any]
    lowest: Floors
    run: Callable[[], Frames]
    narrow: Collection[Any] = ()

    @cached_property
    def seen(self) -> Frames:
        """The float model running over all cases."""
        return self.run()

    def report(self) -> Report:
        """The errors of all layers over all cases."""
        cases = ((integers_of(self.net, inputs), self._values(values)) for inputs, values in self.seen)
        report = compare(self.net, list(self.layers.values()), cases, self.seen.data.labels)
        done = {layer.name: self._done(each) for each, layer in self.layers.items()}
        return replace(report, layers=tuple(replace(each, done=done[each.name]) for each in report.layers))

    def _done(self, variable: Any) -> tuple[str, ...]:
        told = (FOUR_BITS,) if variable in self.narrow else ()
        return (*self.treatment.done(self.order.index(variable)), *told)

    def _values(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """The float values of the layers, then of the first output. Floors hold for layers that int8 ops read."""
        lowest = self.lowest.values(self.order, values[: len(self.order)])
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
        return Points(canonical(self.module), self.quantizer).find()

    @cached_property
    def linear(self) -> list[Any]:
        """The linear ops."""
        return [variable for variable, value in self.points.values.items() if foldable(value)]

    @cached_property
    def roundings(self) -> Mapping[Any, Rounding]:
        """The roundings of weights, by linear op."""
        return roundings(self.points, self.data, self.states, self.held_back)

    @cached_property
    def states(self) -> Sequence[StatePair]:
        return states_of(self.module)

    @cached_property
    def seen(self) -> Frames:
        """The float model running over all cases."""
        return self.frames(self.points)

    def frames(self, points: Points) -> Frames:
        """The values of quantised results, of softmaxes' operands, and of the first output."""
        operands = [call.args[0] for call in softmaxes(points).values()]
        chosen = [*points.in_order(), *operands, outputs(points.module)[0]]
        return frames(points.module, chosen, self.data, self.states)

    def attempt(self, treatment: Treatment, *, part: bool = False) -> Attempt:
        """The network made by a treatment. Ranges are those of all cases, or of the `part` not held back."""
        points, known = self._changed(treatment)
        order, (observed, lowest) = points.in_order(), self._calibrated if part else self._whole
        pairs = zip(order, self._ranges(treatment, observed).values(), strict=True)
        chosen, lowest = choose_tied(points, treatment.scaled(dict(pairs)), self.states), lowest.renamed(known)
        net, layers = self._network(QdqRewriting(points, chosen, lowest), order)
        run = (lambda: self.frames(points)) if known else (lambda: self.seen)
        if treatment.keep != KeptLayers() or treatment.in_float:
            kept = _Kept.of(self, points, treatment, layers)
            wanted = [*kept.read, *kept.shared]
            seen = replace(run(), data=self.data.part(self.calibrating)) if part else run()
            factors, ranges = spread(channel_peaks(seen.values if wanted else iter(()), order, wanted), kept.shared)
            divided = {each: of_range(points, each, around) for each, around in ranges.items()}
            chosen |= divided
            written = QdqRewriting(points, chosen, lowest, kept.kept, factors, kept.wide, kept.ends)
            net, layers = self._network(written, order)
        narrow = {known.get(self.linear[place], self.linear[place]) for place in treatment.narrow}
        return Attempt(
            treatment, net, layers, order, lowest, run, [each for each in order if narrow & {*points.parts(each)}]
        )

    def _changed(self, treatment: Treatment) -> tuple[Points, Mapping[Any, Any]]:
        """The points of the function changed by a treatment, and the new variables by the old."""
        changed, points, known = self.constants(treatment), self.points, dict[Any, Any]()
        if changed:
            module, known = with_constants(points.module, changed)
            points = Points(module, self.quantizer).find()
        weights = {known.get(each, each): value for each, value in self.weights(treatment, changed).items()}
        return replace(points, weights=weights), known

    def weights(self, treatment: Treatment, changed: Constants) -> dict[Any, np.ndarray]:
        """The weights rounded in turn, by linear op. `changed`: other weights of the float function."""
        found, narrow = dict[Any, np.ndarray](), {self.linear[place] for place in treatment.narrow}
        pairs = self._factors(treatment)
        read = ((each, group, self.points.values[each].args[0], by) for group, by in pairs for each in group.readers)
        divided = {reader: group.part(self.points, source, by) for reader, group, source, by in read}
        for linear in self.linear if treatment.compensated else narrow:
            weights = weights_of(self.points, linear, changed)
            rounding, ends = self.roundings.get(linear), IN_INT4 if linear in narrow else IN_INT8
            made = None if rounding is None else rounding.rounded(weights, divided.get(linear), ends)
            found |= {} if made is None else {linear: made}
        return found

    def constants(self, treatment: Treatment) -> dict[Any, np.ndarray]:
        """The weights and biases changed by a treatment."""
        made = dict[Any, np.ndarray]()
        for group, factors in self._factors(treatment):
            made |= equalised(self.points, group, factors, made)
        if treatment.twice:
            places, steps = self.points.in_order(), self.steps(treatment)
            for chain in self.chains:
                if places.index(chain.first) in treatment.twice:
                    made |= twice(self.points, chain, steps, made)
        return made

    def steps(self, treatment: Treatment) -> dict[Any, Quantization]:
        """The quantisation of each result, over the cases not held back."""
        return choose_tied(self.points, treatment.scaled(self.ranges(treatment)), self.states)

    def ranges(self, treatment: Treatment) -> dict[Any, ObservedRange]:
        """The range of each result with equalised channels, over the cases not held back."""
        return self._equalised(treatment, self._calibrated[0])

    def _ranges(self, treatment: Treatment, observed: Mapping[Any, ObservedRange]) -> dict[Any, ObservedRange]:
        """The ranges in the function changed by a treatment, by the variables of the usual function."""
        ranges = self._equalised(treatment, observed)
        steps, order = self.steps(treatment) if treatment.twice else {}, self.points.in_order()
        for chain in self.chains if treatment.twice else ():
            if order.index(chain.first) in treatment.twice:
                side = 0.0
                for each in filter(ranges.__contains__, chain.between):
                    side = steps[each].scale / 4 if each in chain.products else side
                    ranges[each] = ObservedRange(ranges[each].low - side, ranges[each].high + side).steady
        return ranges

    def _equalised(self, treatment: Treatment, observed: Mapping[Any, ObservedRange]) -> dict[Any, ObservedRange]:
        """The ranges after the equalisation of channels."""
        ranges = dict(observed)
        for each, factors in self.divided(treatment).items():
            low, high = (ends / factors for ends in self._ends[each])
            ranges[each] = ObservedRange(float(low.min()), float(high.max())).steady
        return ranges

    def divided(self, treatment: Treatment) -> dict[Any, np.ndarray]:
        """The factors by which the channels of results are divided."""
        pairs = self._factors(treatment)
        found = ((each, group.part(self.points, each, factors)) for group, factors in pairs for each in group.results)
        return {each: factors for each, factors in found if each in self._ends}

    def tail(self, result: Any) -> frozenset[int] | None:
        """The places of a result and of all results computed from it, up to outputs and dense layers. None if they have
        much work in float."""
        points, found, todo = self.points, dict[Any, None](), [result]
        states = {outputs(points.module)[state.output] for state in self.states}
        while todo:
            variable = todo.pop()
            found[variable] = None
            readers = points.readers.get(variable, [])
            products = [each for each in readers if callee(points.values[each]) in LINEAR]
            read = all(foldable(points.values[each]) and callee(points.values[each]) == "matmul" for each in products)
            alone = not (products and _is_linear(points, variable))
            if variable in states or _size(variable) > MOST_IN_FLOAT or not (read and alone):
                return None
            todo += [each for each in readers if each not in (*found, *products) and callee(points.values[each])]
        return frozenset(place for place, each in enumerate(points.in_order()) if each in found)

    @cached_property
    def groups(self) -> list[TiedChannels]:
        return groups(self.points)

    @cached_property
    def chains(self) -> list[Chain]:
        return list(chains(self.points))

    @cached_property
    def part(self) -> Frames:
        """The float model running over the cases not held back."""
        return replace(self.seen, data=self.data.part(self.calibrating))

    @property
    def lowest(self) -> Floors:
        """The floors of variables, over the cases not held back."""
        return self._calibrated[1]

    @cached_property
    def _whole(self) -> tuple[dict[Any, ObservedRange], Floors]:
        return self._observed(self.seen)

    @cached_property
    def _calibrated(self) -> tuple[dict[Any, ObservedRange], Floors]:
        return self._observed(self.part)

    @cached_property
    def _axes(self) -> dict[Any, int]:
        """The axis of channels of each result in groups."""
        return {each: group.axis(self.points) for group in self.groups for each in group.results}

    def along(self, result: Any, factors: np.ndarray) -> np.ndarray:
        """The factors along the channels of a result."""
        return along(factors, len(shape_of(result)), self._axes[result])

    @cached_property
    def _ends(self) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """The least and the largest value of each channel of the results in groups."""
        found, order = dict[Any, tuple[np.ndarray, np.ndarray]](), self.points.in_order()
        axes = self._axes
        places = {each: order.index(each) for each in axes if each in self.points.quantised}
        for values in self.part.values:
            for each, place in places.items():
                rows = np.moveaxis(values[place], axes[each], 0).reshape(values[place].shape[axes[each]], -1)
                low, high = found.get(each, (np.inf, -np.inf))
                found[each] = np.minimum(low, rows.min(axis=1)), np.maximum(high, rows.max(axis=1))
        return found

    def _factors(self, treatment: Treatment) -> Iterator[tuple[TiedChannels, np.ndarray]]:
        """The groups, with the channels' factors, if any. In each result, no channel has more than the usual range."""
        for group in self.groups if treatment.equalised else ():
            ends = [self._ends[each] for each in group.results if each in self._ends]
            relative = np.zeros(max((len(low) for low, _ in ends), default=0))
            for low, high in ends:
                peaks = np.maximum(-low, high)
                relative[: len(peaks)] = np.maximum(relative[: len(peaks)], peaks / (peaks.max() or 1))
            if relative.any():
                yield group, factors_of(relative, treatment.equalised)

    def _observed(self, seen: Frames) -> tuple[dict[Any, ObservedRange], Floors]:
        """The ranges of the quantised variables, and the floors of all."""
        points = self.points
        order, titles = points.in_order(), titles_of(points.module)
        names = [title_of(each, titles) or each.name for each in (*order, *softmaxes(points))]
        whole = extremes(seen.values, [*names, "output"])
        found = dict(zip(order, whole, strict=False))
        lowest = floors(points, found, self._peaks(seen, deep_softmaxes(points, found)))
        lowest = lowest.raised(plateaus(points, seen.values))
        found = lowest.ranges(found)
        if self.cut:
            around = [*found.values(), *whole[len(found) :]]
            found = dict(zip(order, percentiles(seen.values, around, self.cut), strict=False))
        return found, lowest

    def _peaks(self, seen: Frames, deep: Sequence[Any]) -> dict[Any, float]:
        """The least of all rows' largest values, by softmax."""
        points = self.points
        places = {each: len(points.in_order()) + at for at, each in enumerate(softmaxes(points))}
        given = ([values[places[each]] for each in deep] for values in seen.values) if deep else iter(())
        return dict(zip(deep, least_peaks(given, [points.values[each] for each in deep]), strict=True))

    def _network(self, written: QdqRewriting, order: Sequence[Any]) -> tuple[Net, dict[Any, Layer]]:
        """The network, and the layers by float variable."""
        module = written.module
        in_float = frozenset(written.integers[each] for each in written.kept if each in written.integers)
        net, views = net_and_views(module, self.name, kept=in_float, matched=matched(module, self.patterns))
        made, layers = {op.output for op in net.ops}, dict[Any, Layer]()
        for variable in order:
            view: Any = views[written.integers[variable]] if variable in written.integers else None
            if view is not None and view.name in made:
                layers[variable] = Layer(
                    view.name, tuple(map(int, np.argsort(view.order))), written.factors.get(variable)
                )
        return net, layers

    def named(self, layers: Mapping[Any, Layer], names: Sequence[str]) -> list[Any]:
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


@dataclass(frozen=True)
class _Kept:
    """Results in float. `shared`: those read by dense layers. `read`: dense layers' results that only float ops read.
    `ends`: results that are not rounded."""

    kept: frozenset[Any]
    wide: Wide
    shared: list[Any]
    read: list[Any]
    ends: frozenset[Any]

    @staticmethod
    def of(model: FloatModel, points: Points, treatment: Treatment, layers: Mapping[Any, Layer]) -> _Kept:
        keep, order = treatment.keep, points.in_order()
        own = [order[place] for place in treatment.in_float]
        named = model.named(layers, keep.in_int16)
        in_int16 = dict(zip(keep.in_int16, named, strict=True))
        computed = [each for each in own if not _is_linear(points, each)]
        kept = [*model.named(layers, keep.in_float), *named, *computed]
        shared = read_by_dense(points, kept)
        in_int16 |= {each.name: each for each in shared if each in computed}
        wide = Wide.of(points, kept, in_int16)
        ends = [each for each in own if each not in wide.results]
        read = [each for each in read_in_float(points, kept) if each not in (*wide.sums, *ends)]
        return _Kept(frozenset(kept), wide, shared, read, frozenset(ends))


MOST_IN_FLOAT = 4096
"""Most values of a result in float without a wish of the user."""
HELD_BACK_OF = 4
"""A case of this many is held back."""


def _size(variable: Any) -> int:
    """The count of a result's values; for several results together, too many."""
    return MOST_IN_FLOAT + 1 if isinstance(variable.ty, relax.TupleType) else prod(shape_of(variable))


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
    return values if given is None else given.real(values)
