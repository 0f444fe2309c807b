"""Weights rounded in turn to 8 or 4 bits. Each compensates errors of earlier weights.

The weights of a channel are rounded in turn. Later weights of the channel compensate the rounding errors of
earlier weights: they change to keep the layer's result on calibration data changes least. The second moments of the
layer's inputs determine the change (optimal brain surgeon, the idea behind GPTQ).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from npukit.quantize.scales import LARGEST_WEIGHT
from npukit.quantize.states import frames

Ends = tuple[int, int]
"""Least and largest integer."""
IN_INT4, IN_INT8 = (LOWEST, HIGHEST), (-LARGEST_WEIGHT, LARGEST_WEIGHT)
LEAST_DB = 20.0
"""Smallest signal-to-error ratio, in decibels, of a layer with weights of 4 bits. The error is the layer's own."""
MOST_DEPTH = 2304
"""Most weights of a channel with compensation: the second moments are a square of this size."""
ROWS_A_CASE = 256
"""Most patches of a case in the second moments."""
DAMPING = 0.01
"""Added to the second moments, as a fraction of their mean: inputs without values in calibration still count."""
FRACTIONS = np.linspace(0.5, 1.0, 11)
"""Candidates of a scale, as fractions of the scale that holds the largest weight."""


def roundings(
    points: Points, data: Calibration, states: Sequence[StatePair], held_back: Collection[int]
) -> Mapping[Any, Rounding]:
    """The roundings of dense layers and convolutions, by the product. Cases `held_back` only judge results."""
    taken = {each: value for each, value in points.values.items() if foldable(value) and callee(value) in TAKEN}
    layers = {each: Rounding(value) for each, value in taken.items()}
    read = [layer.data for layer in layers.values()]
    for case, values in enumerate(frames(points.module, read, data, states).values):
        for layer, value in zip(layers.values(), values, strict=False):
            layer.see(value, held_back=case in held_back)
    return layers


TAKEN = ("matmul", "nn.conv2d")


class Rounding:
    """A dense layer or convolution, and the second moments of the inputs [group, input, input]."""

    def __init__(self, call: Any) -> None:
        self.data, self._call = call.args[0], call
        self._weights = constant(call.args[1])
        self.groups = 1 if callee(call) == "matmul" else int(call.attrs.groups)
        depth = self.rows.shape[1]
        self._moments = np.zeros(
            (self.groups, depth, depth) if depth <= MOST_DEPTH else (self.groups, depth), np.float32
        )
        self._held_back = np.zeros_like(self._moments)

    @cached_property
    def rows(self) -> np.ndarray:
        """Weights [channel, input]; of convolutions inputs are ordered by place, then by channel."""
        return self._rows(self._weights)

    def _rows(self, weights: np.ndarray) -> np.ndarray:
        return weights.transpose(self._order).reshape(weights.shape[self._order[0]], -1)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        layout = "IO" if callee(self._call) == "matmul" else str(self._call.attrs.kernel_layout)
        return tuple(layout.index(axis) for axis in ("OI" if len(layout) == 2 else "OHWI"))

    def see(self, value: np.ndarray, *, held_back: bool) -> None:
        """Adds the second moments of a case's inputs. Cases `held_back` only judge the result."""
        rows = value.reshape(1, -1, value.shape[-1]) if callee(self._call) == "matmul" else self._patches(value)
        rows = rows[:, :: -(-rows.shape[1] // ROWS_A_CASE)].astype(np.float32)
        moments = self._held_back if held_back else self._moments
        moments += rows.transpose(0, 2, 1) @ rows if moments.ndim == 3 else np.square(rows).sum(1)

    def _patches(self, value: np.ndarray) -> np.ndarray:
        """Each place of the kernel as a row, by group."""
        told = self._call.attrs
        image = value.transpose([str(told.data_layout).index(axis) for axis in "NHWC"])
        top, left, bottom, right = map(int, told.padding)
        image = np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)))
        kernel = [self._weights.shape[str(told.kernel_layout).index(axis)] for axis in "HW"]
        steps, apart = (list(map(int, each)) for each in (told.strides, told.dilation))
        spans = tuple((size - 1) * step + 1 for size, step in zip(kernel, apart, strict=True))
        windows = np.lib.stride_tricks.sliding_window_view(image, spans, (1, 2))
        windows = windows[:, :: steps[0], :: steps[1], :, :: apart[0], :: apart[1]]
        rows = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, *kernel, self.groups, image.shape[-1] // self.groups)
        return rows.transpose(3, 0, 1, 2, 4).reshape(self.groups, -1, self.rows.shape[1])

    @cached_property
    def db_in_four_bits(self) -> float:
        """The signal-to-error ratio of the layer with weights of 4 bits, on cases held back."""
        judge = self._held_back if self._held_back.any() else self._moments
        made = self._compensated(self.rows, self._moments, IN_INT4)
        pairs = zip(self._by_group(self.rows), self._by_group(made), judge, strict=True)
        powers = np.sum([(energy(rows, by), energy(rows - other, by)) for rows, other, by in pairs], axis=0)
        return ratio(*powers)

    @property
    def bears_four_bits(self) -> bool:
        """True for a dense layer, or a convolution in one group, that loses little accuracy."""
        return self.groups == 1 and self.db_in_four_bits >= LEAST_DB

    def rounded(self, weights: np.ndarray, divided: np.ndarray | None, ends: Ends) -> np.ndarray | None:
        """Weights that are multiples of a step. `divided`: factors by which the inputs are divided. None if the weights
        have other inputs than the layer."""
        rows, moments = self._rows(weights), self._moments
        if rows.shape[1] != self.rows.shape[1] or len(rows) % self.groups:
            return None
        if divided is not None:
            inputs = np.reshape(divided, (self.groups, -1)).astype(np.float32)
            factors = np.tile(inputs, rows.shape[1] // inputs.shape[1])
            squares = factors[:, :, np.newaxis] * factors[:, np.newaxis] if moments.ndim == 3 else np.square(factors)
            moments = moments / squares
        shape = [weights.shape[axis] for axis in self._order]
        made = self._compensated(rows, moments, ends).reshape(shape)
        return made.transpose(np.argsort(self._order)).astype(np.float32)

    def _compensated(self, rows: np.ndarray, moments: np.ndarray, ends: Ends) -> np.ndarray:
        parts = zip(self._by_group(rows), moments, strict=True)
        return np.concatenate([compensated(part, by, ends) for part, by in parts])

    def _by_group(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(len(self._moments), -1, rows.shape[1])


def compensated(rows: np.ndarray, moments: np.ndarray, ends: Ends = IN_INT4) -> np.ndarray:
    """Each row of weights as multiples of a step. `moments`: of the inputs, or only the squares of each input."""
    squares = (np.diag(moments) if moments.ndim == 2 else moments).astype(np.float64)
    scales = _scales(rows, squares, ends)[:, np.newaxis]
    if moments.ndim == 1:
        return _rounded(rows, scales, ends)
    left, made = rows.astype(np.float64), np.zeros(rows.shape)
    for place, effects in enumerate(_effects(moments, squares)):
        made[:, place] = _rounded(left[:, place], scales[:, 0], ends)
        errors = (left[:, place] - made[:, place]) / effects[0]
        left[:, place + 1 :] -= np.outer(errors, effects[1:])
    return made


def _effects(moments: np.ndarray, squares: np.ndarray) -> Iterator[np.ndarray]:
    """The share of each input's error taken over by each later input: the rows of the Cholesky factor of the inverse
    moments."""
    damped = moments.astype(np.float64) + np.eye(len(moments)) * max(DAMPING * squares.mean(), 1e-12)
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T
    return (row[place:] for place, row in enumerate(factor))


def _scales(rows: np.ndarray, squares: np.ndarray, ends: Ends) -> np.ndarray:
    """The step of each row with the smallest error of rounding, weighted by the squares of inputs."""
    whole = np.maximum(np.abs(rows).max(axis=1) / ends[1], 1e-30)
    errors = [np.square(rows - _rounded(rows, (whole * each)[:, np.newaxis], ends)) @ squares for each in FRACTIONS]
    return whole * FRACTIONS[np.argmin(errors, axis=0)]


def _rounded(values: np.ndarray, steps: np.ndarray, ends: Ends) -> np.ndarray:
    return np.clip(np.rint(values / steps), *ends) * steps


def ratio(signal: float, error: float) -> float:
    return float(10 * np.log10(max(signal, 1e-30) / max(error, signal * 1e-15, 1e-45)))


def energy(rows: np.ndarray, moments: np.ndarray) -> float:
    return float(np.sum((rows @ moments) * rows) if moments.ndim == 2 else np.sum(np.square(rows) @ moments))
