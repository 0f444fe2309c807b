"""A float function with rounding that is switched at run time: the effect of each layer alone, from one compilation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from tvm import relax, te
from tvm.ir import Call

from npukit.net.importer.expressions import shape_of
from npukit.net.tensor import Quantization
from npukit.quantize.attempt import FloatModel, Treatment, terms
from npukit.quantize.canonical import foldable, weight_axis
from npukit.quantize.function import constant, make_call, outputs, parameters, rewritten, substituted, variables
from npukit.quantize.observe import Run, runner
from npukit.quantize.points import Points
from npukit.quantize.report import MOST_CASES, closeness
from npukit.quantize.rewrite import QdqRewriting
from npukit.quantize.scales import of_weights, quantised
from npukit.quantize.states import Frames
from npukit.quantize.target.chains import Constants

FINE = 2.0**-20
"""Step of a tensor that is not rounded, relative to its range."""
BEYOND = 3e38
"""An input range without an end, as a number."""
RUNS_A_RESULT, PRODUCTS_A_RESULT, MOST_PRODUCTS = 4, 100_000, 4_000_000_000
"""Simulations for each result, the work of a result in products of weights, and the work of all simulations. Large
networks have fewer cases, and the largest no search by single results."""


@dataclass(frozen=True)
class Rounded:
    """Rounded results with their quantisation, and rounded weights by the linear op. Results and weights in `twice`
    have half the step. `constants`: other weights and biases of the float function."""

    results: Mapping[Any, Quantization] = field(default_factory=dict)
    weights: Collection[Any] = ()
    constants: Constants = field(default_factory=dict)
    twice: Collection[Any] = ()


@dataclass(eq=False)
class Simulation:
    """The simulated errors of the outputs of a model over some cases that are not held back."""

    model: FloatModel

    @property
    def points(self) -> Points:
        return self.model.points

    @cached_property
    def linear(self) -> list[Any]:
        """The linear ops."""
        return [variable for variable, value in self.points.values.items() if foldable(value)]

    @cached_property
    def _biased(self) -> dict[Any, np.ndarray]:
        """The biases, by the sum of product and bias."""
        sums = {self.points.inside(each): each for each in self.points.values}
        biases = {product: self.points.bias(product) for product in self.linear}
        return {sums[product]: bias for product, bias in biases.items() if bias is not None}

    @cached_property
    def _run(self) -> Run:
        module = self.points.module
        results = {each: _parameter(each, (4,)) for each in self.points.in_order()}
        shapes = {each: shape_of(self.points.values[each].args[1]) for each in self.linear}
        weights = {each: _parameter(each, shape) for each, shape in shapes.items()}
        biases = {each: _parameter(each, bias.shape) for each, bias in self._biased.items()}
        making = _Simulating(self.points, results, {**weights, **biases})

        def ends(builder: relax.BlockBuilder) -> list[Any]:
            making.take_inputs(builder)
            return [making.read.get(end, end) for end in outputs(module)]

        more = [*results.values(), *weights.values(), *biases.values()]
        simulated = rewritten(module, making.emit, ends, more)
        return runner(simulated, outputs(simulated))

    @cached_property
    def runs(self) -> int:
        """The runs of the model that are cheap enough, for each result."""
        calls, results = [self.points.values[each] for each in self.linear], len(self.points.quantised)
        work = sum(prod(shape_of(call)) * terms(call) for call in calls) + PRODUCTS_A_RESULT * results
        return MOST_PRODUCTS // (work * RUNS_A_RESULT * results)

    @cached_property
    def _cases(self) -> list[int]:
        return self.model.calibrating[: min(max(self.runs, 1), MOST_CASES)]

    def _outputs(self, rounded: Rounded) -> Iterator[list[np.ndarray]]:
        settings = self._settings(rounded)
        states, count = self.model.states, len(parameters(self.points.module))

        def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            found = self._run([*inputs, *settings])
            return [*found, *(found[state.output] for state in states)]

        seen = Frames(run, states, self.model.data, count)
        return (self.model.shown(values) for _, values in seen.some(self._cases))

    def _settings(self, rounded: Rounded) -> list[np.ndarray]:
        given, finer, usual = list[np.ndarray](), rounded.twice, self._usual
        for variable in self.points.in_order():
            given.append(_limits(rounded.results.get(variable), usual[variable], variable in finer))
        for linear in self.linear:
            weights = rounded.constants.get(linear, constant(self.points.values[linear].args[1]))
            axis = weight_axis(self.points.values[linear], weights.ndim)
            given.append(_in_int8(weights, axis, linear in finer) if linear in rounded.weights else weights)
        given += [rounded.constants.get(each, bias) for each, bias in self._biased.items()]
        return [np.ascontiguousarray(each, np.float32) for each in given]

    @cached_property
    def _usual(self) -> dict[Any, Quantization]:
        return self.model.steps(Treatment())

    @cached_property
    def _exact(self) -> list[list[np.ndarray]]:
        return list(self._outputs(Rounded()))

    def db(self, rounded: Rounded) -> float:
        """The signal-to-error ratio of the worst output."""
        return closeness(self._exact, self._outputs(rounded))


def _parameter(variable: Any, shape: Sequence[int]) -> Any:
    sizes: Any = list(shape)
    return relax.Var(f"{variable.name}_setting", relax.TensorType(sizes, "float32"))


def _limits(given: Quantization | None, usual: Quantization, twice: bool) -> np.ndarray:
    """Step, zero point, least and largest integer of a rounded result."""
    if given is None:
        return np.array([usual.scale * FINE, 0, -BEYOND, BEYOND], np.float32)
    finer = 2 if twice else 1
    return np.array([given.scale / finer, given.zero_point * finer, -128 * finer, 127 * finer], np.float32)


def _in_int8(weights: np.ndarray, axis: int, twice: bool) -> np.ndarray:
    """The real numbers of the weights in int8."""
    chosen = of_weights(weights, axis, np.zeros(weights.shape[axis]))
    shape = [1] * weights.ndim
    if chosen.axis is not None:
        shape[chosen.axis] = -1
    scales = np.array(chosen.scales).reshape(shape)
    return np.rint(weights / scales * 2) / 2 * scales if twice else quantised(weights, chosen) * scales


class _Simulating(QdqRewriting):
    """`settings`: parameters with the limits of each quantised result. `constants`: parameters in place of weights and
    biases."""

    def __init__(self, points: Points, settings: Mapping[Any, Any], constants: Mapping[Any, Any]) -> None:
        super().__init__(points, {})
        self._settings, self._constants = settings, constants

    def emit(self, builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        self.take_inputs(builder)
        if isinstance(value, relax.Tuple):
            return
        sources = {source: self.source(variable, source) for source in variables(value)}
        made = substituted(value, sources)
        if variable in self._constants and isinstance(made, Call):
            made = make_call(made.op, [made.args[0], self._constants[variable]], made.attrs, made.ty_args)
        self.define(builder, variable, builder.emit(made, variable.name))

    def define(self, builder: relax.BlockBuilder, variable: Any, emitted: Any) -> None:
        self.real[variable] = self.read[variable] = emitted
        if variable in self._settings:
            self.read[variable] = builder.emit_te(_rounded, emitted, self._settings[variable])


def _rounded(data: Any, limits: Any) -> Any:
    step, zero, least, largest = (limits[at] for at in range(4))

    def each(*place: Any) -> Any:
        steps: Any = te.round(data(*place) / step) + zero
        return (te.max(te.min(steps, largest), least) - zero) * step

    return te.compute(data.shape, each, name="rounded")
