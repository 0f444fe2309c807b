"""Weights of 4 bits for layers with enough accuracy left.

The weights of a channel are rounded in turn. Later weights of the channel compensate the rounding errors of
earlier weights: they change to keep the layer's result on calibration data changes least. The second moments of the
layer's inputs determine the change (optimal brain surgeon, the idea behind GPTQ).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from npukit.frontend.shapes import StatePair
from npukit.net.importer.expressions import callee
from npukit.quantize.calibration import Calibration
from npukit.quantize.canonical import foldable
from npukit.quantize.function import constant
from npukit.quantize.grid import HIGHEST, LOWEST
from npukit.quantize.points import Points
from npukit.quantize.states import frames

LEAST_DB = 20.0
"""Smallest signal-to-error ratio, in decibels, of a layer with weights of 4 bits. The error is the layer's own."""
MOST_DEPTH = 2304
"""Most weights of a channel that compensate errors: the second moments are a square of this size."""
PERIOD = 4
"""Every fourth case is held back."""
ROWS_A_CASE = 256
"""Most patches of a case in the second moments."""
DAMPING = 0.01
"""Added to the second moments, as a fraction of their mean: inputs that calibration does not show still count."""
FRACTIONS = np.linspace(0.5, 1.0, 11)
"""Candidates of a scale, as fractions of the scale that holds the largest weight."""


def four_bits(points: Points, data: Calibration, states: Sequence[StatePair]) -> dict[Any, np.ndarray]:
    """Float weights on grids of 4 bits, by the result of each layer with enough accuracy."""
    layers = [NarrowLayer(variable, value) for variable, value in points.values.items() if _is_taken(value)]
    for case, values in enumerate(frames(points.module, [layer.data for layer in layers], data, states).values):
        for layer, value in zip(layers, values, strict=False):
            layer.see(value, held_back=case % PERIOD == PERIOD - 1)
    found = ((layer.variable, layer.narrow()) for layer in layers)
    return {variable: weights for variable, weights in found if weights is not None}


def _is_taken(value: Any) -> bool:
    if callee(value) == "matmul":
        return foldable(value)
    return callee(value) == "nn.conv2d" and foldable(value) and int(value.attrs.groups) == 1


class NarrowLayer:
    """A dense layer, or a convolution in one group, and the second moments of the inputs."""

    def __init__(self, variable: Any, call: Any) -> None:
        self.variable, self.data, self._call = variable, call.args[0], call
        self._weights = constant(call.args[1])
        depth = self.rows.shape[1]
        self._moments = np.zeros((depth, depth) if depth <= MOST_DEPTH else depth, np.float32)
        self._held_back = np.zeros_like(self._moments)

    @cached_property
    def rows(self) -> np.ndarray:
        """Weights [channel, input]; of convolutions inputs are ordered by place, then by channel."""
        return self._weights.transpose(self._order).reshape(self._weights.shape[self._order[0]], -1)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        layout = "IO" if callee(self._call) == "matmul" else str(self._call.attrs.kernel_layout)
        return tuple(layout.index(axis) for axis in ("OI" if len(layout) == 2 else "OHWI"))

    def see(self, value: np.ndarray, *, held_back: bool) -> None:
        """Adds the second moments of a case's inputs. Cases `held_back` only judge the result."""
        rows = value.reshape(-1, value.shape[-1]) if callee(self._call) == "matmul" else self._patches(value)
        rows = rows[:: -(-len(rows) // ROWS_A_CASE)].astype(np.float32)
        moments = self._held_back if held_back else self._moments
        moments += rows.T @ rows if moments.ndim == 2 else np.square(rows).sum(0)

    def _patches(self, value: np.ndarray) -> np.ndarray:
        """Each place of the kernel as a row."""
        told = self._call.attrs
        image = value.transpose([str(told.data_layout).index(axis) for axis in "NHWC"])
        top, left, bottom, right = map(int, told.padding)
        image = np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)))
        kernel = [self._weights.shape[str(told.kernel_layout).index(axis)] for axis in "HW"]
        steps, apart = (list(map(int, each)) for each in (told.strides, told.dilation))
        spans = tuple((size - 1) * step + 1 for size, step in zip(kernel, apart, strict=True))
        windows = np.lib.stride_tricks.sliding_window_view(image, spans, (1, 2))
        windows = windows[:, :: steps[0], :: steps[1], :, :: apart[0], :: apart[1]]
        return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.rows.shape[1])

    def narrow(self) -> np.ndarray | None:
        """The weights on a grid of 4 bits; None if the layer loses too much accuracy."""
        made = compensated(self.rows, self._moments)
        judge = self._held_back if self._held_back.any() else self._moments
        if decibels(self.rows, made, judge) < LEAST_DB:
            return None
        shape = [self._weights.shape[axis] for axis in self._order]
        return made.reshape(shape).transpose(np.argsort(self._order)).astype(np.float32)


def compensated(rows: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Each row of weights as multiples of a step. `moments`: of the inputs, or only the squares of each input."""
    squares = (np.diag(moments) if moments.ndim == 2 else moments).astype(np.float64)
    scales = _scales(rows, squares)[:, np.newaxis]
    if moments.ndim == 1:
        return _rounded(rows, scales)
    left, made = rows.astype(np.float64), np.zeros(rows.shape)
    for place, effects in enumerate(_effects(moments, squares)):
        made[:, place] = _rounded(left[:, place], scales[:, 0])
        errors = (left[:, place] - made[:, place]) / effects[0]
        left[:, place + 1 :] -= np.outer(errors, effects[1:])
    return made


def _effects(moments: np.ndarray, squares: np.ndarray) -> Iterator[np.ndarray]:
    """The share of each input's error taken over by each later input: the rows of the Cholesky factor of the inverse
    moments."""
    damped = moments.astype(np.float64) + np.eye(len(moments)) * max(DAMPING * squares.mean(), 1e-12)
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    return (row[place:] for place, row in enumerate(factor))


def _scales(rows: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """The step of each row with the smallest error of rounding, weighted by the squares of inputs."""
    whole = np.maximum(np.abs(rows).max(axis=1) / HIGHEST, 1e-30)
    errors = [np.square(rows - _rounded(rows, (whole * each)[:, np.newaxis])) @ squares for each in FRACTIONS]
    return whole * FRACTIONS[np.argmin(errors, axis=0)]


def _rounded(values: np.ndarray, steps: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(values / steps), LOWEST, HIGHEST) * steps


def decibels(rows: np.ndarray, made: np.ndarray, moments: np.ndarray) -> float:
    """The ratio of the layer's results to their errors."""
    signal, error = (energy(each, moments) for each in (rows, rows - made))
    return float(10 * np.log10(max(signal, 1e-30) / max(error, signal * 1e-15, 1e-45)))


def energy(rows: np.ndarray, moments: np.ndarray) -> float:
    return float(np.sum((rows @ moments) * rows) if moments.ndim == 2 else np.sum(np.square(rows) @ moments))
