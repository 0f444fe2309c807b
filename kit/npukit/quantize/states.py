"""States named by the user, and their values while a float model runs over calibration data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tvm.ir import IRModule

from npukit.errors import NpukitError
from npukit.frontend.shapes import StatePair, output_names, states_of, with_states
from npukit.net.importer.expressions import dtype_of, shape_of
from npukit.net.tensor import Quantization
from npukit.quantize.calibration import Calibration
from npukit.quantize.choose import choose
from npukit.quantize.function import outputs, parameters
from npukit.quantize.observe import ObservedRange, Run, runner
from npukit.quantize.points import Points

Names = Sequence[tuple[str, str]]
"""Pairs of a state's input and output, by their names in the model or as `in1` and `out1`."""


def with_named_states(module: IRModule, names: Names, model: str) -> IRModule:
    """The module with the states named by the user, initially zero. `model`: the file's name in errors."""
    inputs, known = parameters(module), output_names(module)
    results = [known[place] if place < len(known) else "" for place in range(len(outputs(module)))]
    pairs = list(states_of(module))
    for given, becomes in names:
        said = f"{model}: --state {given}={becomes}"
        place = _numbered(given, "in", [each.name for each in inputs], said)
        begins = np.zeros(shape_of(inputs[place]), dtype_of(inputs[place]))
        pairs.append(StatePair(place, _numbered(becomes, "out", results, said), begins))
    if len({pair.input for pair in pairs}) < len(pairs):
        raise NpukitError(f"{model}: an input is named twice as a state")
    return with_states(module, pairs)


def _numbered(name: str, stem: str, names: Sequence[str], said: str) -> int:
    """The index of an input or output, from its name or from `in0`."""
    known = {each or f"{stem}{place}": place for place, each in enumerate(names)}
    numbered = {f"{stem}{place}": place for place in range(len(names))}
    if name not in (known | numbered):
        raise NpukitError(f"{said}: the model has no {stem}put {name!r}", tries=["one of: " + ", ".join(known)])
    return known.get(name, numbered.get(name, 0))


@dataclass(frozen=True)
class Frames:
    """A float module running over calibration data, frame by frame. Yields inputs and values of the chosen variables.
    All cases form one stream, in which each frame finds the states left by the frame before. The data have no arrays
    for states."""

    run: Run
    states: Sequence[StatePair]
    data: Calibration
    count: int
    """Inputs of the module, including states."""

    def __iter__(self) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        held = [state.initial for state in self.states]
        for case in self.data.cases():
            kept = {state.input: value for state, value in zip(self.states, held, strict=True)}
            given = iter(case)
            inputs = [kept[place] if place in kept else next(given) for place in range(self.count)]
            found = self.run(inputs)
            values, held = found[: len(found) - len(held)], found[len(found) - len(held) :]
            yield inputs, values

    def some(self, cases: Collection[int]) -> Iterator[tuple[list[np.ndarray], list[np.ndarray]]]:
        """The inputs and values of some cases. A stream is run from its first frame."""
        if not self.states:
            return iter(replace(self, data=self.data.part(cases)))
        return (found for case, found in enumerate(self) if case in cases)

    @property
    def values(self) -> Iterator[list[np.ndarray]]:
        return (values for _, values in self)


def frames(module: IRModule, chosen: Sequence[Any], data: Calibration, states: Sequence[StatePair]) -> Frames:
    run = runner(module, [*chosen, *(outputs(module)[state.output] for state in states)])
    return Frames(run, states, data, len(parameters(module)))


def choose_tied(
    points: Points, ranges: Mapping[Any, ObservedRange], states: Sequence[StatePair]
) -> dict[Any, Quantization]:
    """The quantisation of each variable. The input and the output of a state have the same."""
    inputs, results = parameters(points.module), outputs(points.module)
    pairs = [(inputs[state.input], points.origin(results[state.output])) for state in states]
    known = [(before, after) for before, after in pairs if before in ranges and after in ranges]
    joined = {each: ranges[before].joined(ranges[after]) for before, after in known for each in (before, after)}
    chosen = choose(points, {**ranges, **joined})
    tied = {before: chosen[after] for before, after in known}
    return choose(points, {**ranges, **joined}, tied) if tied else chosen
