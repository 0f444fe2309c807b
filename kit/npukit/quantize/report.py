"""The distance of an int8 network from the float one it was made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npukit.net.net import Net
from npukit.net.reference import evaluate
from npukit.quantize.calibration import Calibration

MOST_CASES = 16
"""Cases that are evaluated at once, of a small network."""
MOST_BYTES = 1 << 23
"""Bytes of all tensors of the cases that are evaluated at once; in float, and in sums, they take ten times as many."""


@dataclass(frozen=True)
class Layer:
    """A quantised result: its op, and how it is read in the float model's order of axes, times its `factors`."""

    name: str
    axes: tuple[int, ...]
    factors: np.ndarray | None = None

    def real(self, net: Net, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The numbers its integers stand for, with a leading axis of cases."""
        given = net.tensor(self.name).quantization
        assert given is not None
        integers = values[self.name].transpose(0, *(axis + 1 for axis in self.axes)).astype(np.float64)
        real = (integers - given.zero_point) * given.scale
        return real if self.factors is None else real * self.factors


@dataclass(frozen=True)
class LayerError:
    """Signal over error in decibels; infinite where there is no error."""

    name: str
    sqnr_db: float


@dataclass(frozen=True)
class Accuracy:
    """The share of the calibration's labels that each network finds."""

    float_: float
    int8: float
    cases: int

    def to_json(self) -> dict[str, Any]:
        return {"float": self.float_, "int8": self.int8, "cases": self.cases}


@dataclass(frozen=True)
class Report:
    """Errors in the order of the ops; the accuracy if there are labels."""

    layers: tuple[LayerError, ...]
    accuracy: Accuracy | None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"quantization": [{"name": e.name, "sqnr_db": e.sqnr_db} for e in self.layers]}
        return told | ({"accuracy": self.accuracy.to_json()} if self.accuracy else {})


@dataclass
class _Sums:
    signal: float = 0.0
    error: float = 0.0

    def add(self, real: np.ndarray, got: np.ndarray) -> None:
        self.signal += float(np.sum(np.square(real, dtype=np.float64)))
        self.error += float(np.sum(np.square(real - got)))

    @property
    def decibels(self) -> float:
        """The signal over error, at most that of an error in the last bit of a float."""
        signal = max(self.signal, 1e-30)
        return round(float(10 * np.log10(signal / max(self.error, signal * 1e-15))), 1)


Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def compare(net: Net, layers: Sequence[Layer], given: Calibration, inputs: Sequence[np.ndarray], run: Run) -> Report:
    """The net on `inputs`, against the float values that `run` gives for each layer and, last, the first output."""
    sums = [_Sums() for _ in layers]
    float_answers, int8_answers = [], []
    cases, at_once = list(given.cases()), _cases_at_once(net)
    for start in range(0, given.count, at_once):
        values = evaluate(net, [array[start : start + at_once] for array in inputs])
        reals = [np.stack(column) for column in zip(*map(run, cases[start : start + at_once]), strict=True)]
        for total, layer, real in zip(sums, layers, reals, strict=False):
            total.add(real, layer.real(net, values))
        float_answers.append(_answers(reals[-1]))
        int8_answers.append(_answers(values[net.outputs[0]]))
    errors = tuple(LayerError(layer.name, total.decibels) for layer, total in zip(layers, sums, strict=True))
    return Report(errors, _accuracy(given.labels, np.concatenate(float_answers), np.concatenate(int8_answers)))


def _cases_at_once(net: Net) -> int:
    a_case = sum(net.tensor(op.output).bytes for op in net.ops)
    return min(max(MOST_BYTES // max(a_case, 1), 1), MOST_CASES)


def _answers(outputs: np.ndarray) -> np.ndarray:
    return outputs.reshape(len(outputs), -1).argmax(axis=1)


def _accuracy(labels: np.ndarray | None, float_: np.ndarray, int8: np.ndarray) -> Accuracy | None:
    if labels is None:
        return None
    return Accuracy(float(np.mean(float_ == labels)), float(np.mean(int8 == labels)), len(labels))
