"""The error of an int8 network against its float model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import log10
from typing import Any

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops.kind import Reference
from npukit.net.reference import evaluate
from npukit.net.reference.interpreter import run_op
from npukit.net.tensor import Quantization
from npukit.quantize.scales import quantised

MOST_CASES = 16
"""Most cases evaluated at once, for a small network."""
MOST_SAMPLE_BYTES = 1 << 23
"""Most bytes of tensors evaluated at once, over all cases. As floats and sums, they take ten times as many."""

NO_ERROR = 150.0
"""Decibels without error."""


@dataclass(frozen=True)
class Layer:
    """A quantised result by its op. `axes` and `factors` convert it to the float model's axes and values."""

    name: str
    axes: tuple[int, ...]
    factors: np.ndarray | None = None

    def real(self, net: Net, integers: np.ndarray) -> np.ndarray:
        """The real numbers of the result, with a leading axis of cases."""
        real = self._quantization(net).real(integers.transpose(0, *(axis + 1 for axis in self.axes)))
        return real if self.factors is None else real * self.factors

    def integers(self, net: Net, real: np.ndarray) -> np.ndarray:
        """The result for real numbers in the float model's axes."""
        divided = real if self.factors is None else real / self.factors
        return quantised(divided, self._quantization(net)).transpose(0, *(1 + np.argsort(self.axes)))

    def _quantization(self, net: Net) -> Quantization:
        given = net.tensor(self.name).quantization
        assert given is not None
        return given


@dataclass(frozen=True)
class LayerError:
    """Signal-to-error ratios of a layer in decibels; 150 without error. `alone_db`: the layer computes the float
    model's values. `sqnr_db`: with the errors of all earlier layers. `done`: steps of the search for this layer."""

    name: str
    sqnr_db: float
    alone_db: float
    done: tuple[str, ...] = ()


@dataclass(frozen=True)
class Accuracy:
    """The fraction of the calibration's labels found by each network."""

    float_: float
    int8: float
    cases: int

    def to_json(self) -> dict[str, Any]:
        return {"float": self.float_, "int8": self.int8, "cases": self.cases}


@dataclass(frozen=True)
class Reached:
    """The signal-to-error ratio of the outputs on held-back cases. `alone`: a single case, which is also calibrated
    with. `steps`: steps of the search for the whole network."""

    db: float
    target_db: float
    cases: tuple[int, ...]
    alone: bool = False
    steps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "db": round(self.db, 1)}


@dataclass(frozen=True)
class Report:
    """Errors in the order of the ops. The accuracy is present if there are labels, `reached` if there is a target."""

    layers: tuple[LayerError, ...]
    accuracy: Accuracy | None
    reached: Reached | None = None

    def worst(self, count: int) -> list[LayerError]:
        """The layers with the largest errors first."""
        return sorted(self.layers, key=lambda layer: layer.sqnr_db)[:count]

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"quantization": [asdict(each) for each in self.layers]}
        told |= {"reached": self.reached.to_json()} if self.reached else {}
        return told | ({"accuracy": self.accuracy.to_json()} if self.accuracy else {})


Cases = Iterator[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]
"""The net's inputs, and the float values of the layers and then of the first output."""


def compare(net: Net, layers: Sequence[Layer], cases: Cases, labels: np.ndarray | None) -> Report:
    """Compares the net with the float network, case by case."""
    together, alone = _Errors(net), _Errors(net)
    float_answers, int8_answers = [], []
    bytes_a_case = sum(net.tensor(op.output).bytes for op in net.ops)
    at_once = min(max(MOST_SAMPLE_BYTES // max(bytes_a_case, 1), 1), MOST_CASES)
    while some := list(islice(cases, at_once)):
        inputs, reals = ([np.stack(column) for column in zip(*each, strict=True)] for each in zip(*some, strict=True))
        known = {layer.name: (layer, real) for layer, real in zip(layers, reals, strict=False)}
        values = evaluate(net, inputs, run=together.noted(known, corrected=False))
        int8_answers.append(_answers(values[net.outputs[0]]))
        float_answers.append(_answers(reals[-1]))
        del values
        evaluate(net, inputs, run=alone.noted(known, corrected=True))
    sqnr = tuple(LayerError(each.name, together.decibels(each.name), alone.decibels(each.name)) for each in layers)
    if labels is None:
        return Report(sqnr, None)
    in_float, in_int8 = (float(np.mean(np.concatenate(each) == labels)) for each in (float_answers, int8_answers))
    return Report(sqnr, Accuracy(in_float, in_int8, len(labels)))


@dataclass
class _Errors:
    """Sums of the squares of signals and errors by layer."""

    net: Net
    sums: dict[str, np.ndarray] = field(default_factory=dict)

    def noted(self, known: Mapping[str, tuple[Layer, np.ndarray]], *, corrected: bool) -> Reference:
        """Computes an op and notes its error. `known`: float values by layer. `corrected`: later ops read these."""

        def run(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
            made = run_op(net, op, operands)
            if op.output not in known:
                return made
            layer, real = known[op.output]
            error = np.sum(np.square(real - layer.real(net, made)))
            before = self.sums.get(op.output, np.zeros(2))
            self.sums[op.output] = before + np.array([np.sum(np.square(real, dtype=np.float64)), error])
            return layer.integers(net, real) if corrected else made

        return run

    def decibels(self, name: str) -> float:
        return round(decibels(*self.sums[name]), 1)


def closeness(expected: Iterable[Sequence[np.ndarray]], found: Iterable[Sequence[np.ndarray]]) -> float:
    """The signal-to-error ratio of the worst output over all cases, in decibels; 150 without error or outputs."""
    powers = [
        [(np.sum(np.square(real, dtype=np.float64)), np.sum(np.square(real - got))) for real, got in pairs]
        for pairs in map(zip, expected, found)
    ]
    return min((decibels(*each) for each in np.sum(powers, axis=0)), default=NO_ERROR)


def decibels(signal: float, error: float) -> float:
    """The ratio of two sums of squares in decibels; 150 without error."""
    signal = max(float(signal), 1e-30)
    return 10 * log10(signal / max(float(error), signal * 10 ** (-NO_ERROR / 10)))


def _answers(outputs: np.ndarray) -> np.ndarray:
    return outputs.reshape(len(outputs), -1).argmax(axis=1)
