"""The error of an int8 network against its float model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from npukit.net.net import Net
from npukit.net.reference import evaluate

MOST_CASES = 16
"""Most cases evaluated at once, for a small network."""
MOST_SAMPLE_BYTES = 1 << 23
"""Most bytes of tensors evaluated at once, over all cases. As floats and sums, they take ten times as many."""


@dataclass(frozen=True)
class Layer:
    """A quantised result by its op. `axes` and `factors` convert it to the float model's axes and values."""

    name: str
    axes: tuple[int, ...]
    factors: np.ndarray | None = None

    def real(self, net: Net, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The real numbers of the result, with a leading axis of cases."""
        given = net.tensor(self.name).quantization
        assert given is not None
        integers = values[self.name].transpose(0, *(axis + 1 for axis in self.axes)).astype(np.float64)
        real = (integers - given.zero_point) * given.scale
        return real if self.factors is None else real * self.factors


@dataclass(frozen=True)
class LayerError:
    """Signal-to-error ratio in decibels; infinite without error."""

    name: str
    sqnr_db: float


@dataclass(frozen=True)
class Accuracy:
    """The fraction of the calibration's labels found by each network."""

    float_: float
    int8: float
    cases: int

    def to_json(self) -> dict[str, Any]:
        return {"float": self.float_, "int8": self.int8, "cases": self.cases}


@dataclass(frozen=True)
class Report:
    """Errors in the order of the ops. The accuracy is present if there are labels."""

    layers: tuple[LayerError, ...]
    accuracy: Accuracy | None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"quantization": [{"name": e.name, "sqnr_db": e.sqnr_db} for e in self.layers]}
        return told | ({"accuracy": self.accuracy.to_json()} if self.accuracy else {})


Cases = Iterator[tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]
"""The net's inputs, and the float values of the layers and then of the first output."""


def compare(net: Net, layers: Sequence[Layer], cases: Cases, labels: np.ndarray | None) -> Report:
    """Compares the net with the float network, case by case."""
    signals, errors = np.zeros(len(layers)), np.zeros(len(layers))
    float_answers, int8_answers = [], []
    bytes_a_case = sum(net.tensor(op.output).bytes for op in net.ops)
    at_once = min(max(MOST_SAMPLE_BYTES // max(bytes_a_case, 1), 1), MOST_CASES)
    while some := list(islice(cases, at_once)):
        inputs, reals = ([np.stack(column) for column in zip(*each, strict=True)] for each in zip(*some, strict=True))
        values = evaluate(net, inputs)
        for place, (layer, real) in enumerate(zip(layers, reals, strict=False)):
            signals[place] += np.sum(np.square(real, dtype=np.float64))
            errors[place] += np.sum(np.square(real - layer.real(net, values)))
        float_answers.append(_answers(reals[-1]))
        int8_answers.append(_answers(values[net.outputs[0]]))
    signals = np.maximum(signals, 1e-30)
    decibels = [round(float(each), 1) for each in 10 * np.log10(signals / np.maximum(errors, signals * 1e-15))]
    sqnr = tuple(LayerError(layer.name, each) for layer, each in zip(layers, decibels, strict=True))
    if labels is None:
        return Report(sqnr, None)
    in_float, in_int8 = (float(np.mean(np.concatenate(each) == labels)) for each in (float_answers, int8_answers))
    return Report(sqnr, Accuracy(in_float, in_int8, len(labels)))


def _answers(outputs: np.ndarray) -> np.ndarray:
    return outputs.reshape(len(outputs), -1).argmax(axis=1)
