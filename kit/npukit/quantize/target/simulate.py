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

from npukit.frontend.recurrent import group
from npukit.net.importer.expressions import callee, shape_of
from npukit.net.tensor import Quantization
from npukit.quantize.attempt import FloatModel, terms
from npukit.quantize.canonical import weight_axis
from npukit.quantize.choose import FIXED_SCALE
from npukit.quantize.function import make_call, outputs, parameters, rewritten, substituted, variables
from npukit.quantize.observe import Run, runner
from npukit.quantize.points import Points
from npukit.quantize.report import closeness
from npukit.quantize.rewrite import QdqRewriting
from npukit.quantize.scales import of_weights, quantised
from npukit.quantize.states import Frames
from npukit.quantize.target.chains import Constants, weights_of
from npukit.quantize.target.treatment import Treatment

FINE = 2.0**-20
"""Step of a tensor that is not rounded, relative to its range."""
BEYOND = 3e38
"""An input range without an end, as a number."""
RUNS, PRODUCTS_A_RESULT, MOST_PRODUCTS = 16, 50_000, 16_000_000_000
"""Simulations besides one for each scale or result, the work of a result in products of weights, and the work of all
simulations. Large networks have fewer cases, and the largest no search by single results."""
CASES_SIMULATED = 24


@dataclass(frozen=True)
class Rounded:
    """Rounded results with their quantisation, and rounded weights by the linear op. Results and weights in `twice`
    have half the step. `constants`: other weights and biases of the float function."""

    results: Mapping[Any, Quantization] = field(default_factory=dict)
    weights: Collection[Any] = ()
    constants: Constants = field(default_factory=dict)
    twice: Collection[Any] = ()


@dataclass(frozen=True)
class Noise:
    """The powers of errors, relative to the signals': of the worst output, and of the worst output before the last
    softmax, sigmoid or tanh. In few cases `scores` tell more about a network than outputs."""

    outputs: float
    scores: float


@dataclass(eq=False)
class Simulation:
    """The simulated errors of the outputs of a model over some cases that are not held back."""

    model: FloatModel

    @property
    def points(self) -> Points:
        return self.model.points

    @property
    def linear(self) -> list[Any]:
        """The linear ops."""
        return self.model.linear

    @cached_property
    def _biased(self) -> dict[Any, np.ndarray]:
        """The biases, by the sum of product and bias."""
        sums = {self.points.inside(each): each for each in self.points.values}
        biases = {product: self.points.bias(product) for product in self.linear}
        return {sums[product]: bias for product, bias in biases.items() if bias is not None}

    @cached_property
    def _scores(self) -> list[Any]:
        """Each output, or the operand of an output's last softmax, sigmoid or tanh."""
        values, ends = self.points.values, outputs(self.points.module)
        calls = {end: values[end] for end in ends if callee(values.get(end)) in FIXED_SCALE}
        operands = {end: call.args[0] for end, call in calls.items()}
        return [operands[end] if isinstance(operands.get(end), relax.Var) else end for end in ends]

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
            return [making.read.get(end, end) for end in [*outputs(module), *self._scores]]

        more = [*results.values(), *weights.values(), *biases.values()]
        simulated = rewritten(module, making.emit, ends, more)
        return runner(simulated, outputs(simulated))

    def products(self, linear: Any) -> int:
        """The products of a linear op."""
        call = self.points.values[linear]
        return prod(shape_of(call)) * terms(call)

    @cached_property
    def scales(self) -> list[list[int]]:
        """The places of results with a scale in common, for each scale."""
        found = dict[str, list[int]]()
        for place, each in enumerate(self.points.in_order()):
            found.setdefault(group(each.name) or str(place), []).append(place)
        return list(found.values())

    def runs(self, simulations: int) -> int:
        """The cases cheap enough for a number of simulations."""
        work = sum(map(self.products, self.linear)) + PRODUCTS_A_RESULT * len(self.points.quantised)
        return MOST_PRODUCTS // (work * (RUNS + simulations))

    @cached_property
    def _cases(self) -> list[int]:
        return self.model.calibrating[: min(max(self.runs(len(self.scales)), 1), CASES_SIMULATED)]

    def _outputs(self, rounded: Rounded) -> Iterator[list[np.ndarray]]:
        settings = self._settings(rounded)
        states, count = self.model.states, len(parameters(self.points.module))

        def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            found = self._run([*inputs, *settings])
            return [*found, *(found[state.output] for state in states)]

        seen, ends = Frames(run, states, self.model.data, count), len(self._scores)
        for _, values in seen.some(self._cases):
            scores = self.model.lowest.values(self._scores, values[ends:])
            yield [*self.model.shown(values[:ends]), *self.model.shown(scores)]

    def _settings(self, rounded: Rounded) -> list[np.ndarray]:
        given, finer, usual = list[np.ndarray](), rounded.twice, self._usual
        for variable in self.points.in_order():
            given.append(_limits(rounded.results.get(variable), usual[variable], variable in finer))
        for linear in self.linear:
            weights = weights_of(self.points, linear, rounded.constants)
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

    def noise(self, rounded: Rounded) -> Noise:
        """The errors of some rounding."""
        found, count = list(self._outputs(rounded)), len(self._exact[0]) // 2
        slices = slice(None, count), slice(count, None)
        pairs = (([each[part] for each in self._exact], [each[part] for each in found]) for part in slices)
        return Noise(*(10 ** (-closeness(*each) / 10) for each in pairs))


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
    scales, _ = chosen.arrays(weights.ndim)
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
