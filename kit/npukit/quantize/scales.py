"""Scales and zero points: of activations from their ranges, of weights from their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, isinf

import numpy as np

from npukit.errors import NpukitError
from npukit.net.tensor import Quantization, Tensor
from npukit.quantize.grid import grid_of
from npukit.quantize.observe import ObservedRange

INT8_STEPS = 255
LARGEST_WEIGHT = 127
LARGEST_BIAS = 1 << 26
"""Largest bias in units of both scales. It leaves room for products in an accelerator's accumulator."""
SMALLEST_SCALE = 2.0**-60

INTEGER_RANGES = {"int8": (-128, 127), "int4": (-8, 7)}
"""Least and largest integer of each type that a quantizer may give. Activations are always int8."""

Quantizer = Callable[[Tensor, np.ndarray | None], Tensor]
"""Replaces npukit's choice of a tensor's scales and type by a choice that the hardware supports. The second argument
contains the real values of a constant; None for an activation."""


def unchanged(tensor: Tensor, values: np.ndarray | None) -> Tensor:
    del values
    return tensor


def in_turn(quantizers: Sequence[Quantizer]) -> Quantizer:
    """Several quantizers as a single quantizer. Each receives the result of the previous quantizer."""

    def quantizer(tensor: Tensor, values: np.ndarray | None) -> Tensor:
        for each in quantizers:
            made = each(tensor, values)
            allowed = replace(tensor, quantization=made.quantization, dtype=made.dtype)
            changed = "" if made == allowed else "changes more than the type, the scales and the zero points"
            wrong = changed or _impossible(made, values)
            if wrong:
                raise NpukitError(f"the quantizer {wrong} of {tensor.name}", tries=["docs/plug-in.md, section 7"])
            tensor = made
        return tensor

    return quantizer if quantizers else unchanged


def _impossible(made: Tensor, values: np.ndarray | None) -> str:
    """The fault of an invalid quantised tensor; empty for a valid tensor."""
    types = list(INTEGER_RANGES) if values is not None else ["int8"]
    if made.dtype not in types:
        return f"makes {made.dtype}, not {' or '.join(types)},"
    if not isinstance(made.quantization, Quantization):
        return f"gives {made.quantization!r} for a Quantization"
    given, (least, largest) = made.quantization, INTEGER_RANGES[made.dtype]
    count = 1 if given.axis is None else made.shape[given.axis]
    if not len(given.scales) == len(given.zero_points) == count or (values is None and count > 1):
        return f"gives {len(given.scales)} scales and {len(given.zero_points)} zero points, not {count} each,"
    if not all(0 < scale < inf for scale in given.scales):
        return f"gives the scale {next(scale for scale in given.scales if not 0 < scale < inf)}"
    possible = all(least <= each <= largest for each in given.zero_points)
    return "" if possible else f"gives a zero point that no {made.dtype} has"


def held(quantizer: Quantizer, name: str, shape: Sequence[int], chosen: Quantization) -> Quantization:
    """The quantizer's quantisation of an activation. `chosen`: npukit's own choice."""
    made = quantizer(Tensor(name, tuple(shape), "int8", chosen), None).quantization
    assert made is not None
    return made


def integers(
    quantizer: Quantizer, name: str, values: np.ndarray, chosen: Quantization
) -> tuple[np.ndarray, Quantization]:
    """A constant as integers, and the quantizer's quantisation. `chosen`: npukit's own choice."""
    made = quantizer(Tensor(name, values.shape, "int8", chosen), values)
    assert made.quantization is not None
    return quantised(values, made.quantization, made.dtype), made.quantization


def of_activation(around: ObservedRange) -> Quantization:
    """int8 with a single zero point. The range is extended to include zero. An infinite end, as of a mask, becomes the
    negative of the other end."""
    low, high = min(around.low, 0.0), max(around.high, 0.0)
    low, high = (-high if isinf(low) else low), (-low if isinf(high) else high)
    scale = float(np.float32(max((high - low) / INT8_STEPS, SMALLEST_SCALE)))
    zero_point = int(np.clip(round(-128 - low / scale), -128, 127))
    return Quantization((scale,), (zero_point,))


def of_weights(weights: np.ndarray, axis: int, least: np.ndarray) -> Quantization:
    """Symmetric int8 with a scale for each index of `axis`, none smaller than `least`. Weights that are integers in the
    file stay exact, and weights on a grid of 4 bits stay on the grid."""
    rows = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    grid = grid_of(rows)
    needed = steps_of(rows) if grid is None or np.any(grid < least) else grid
    scales = np.maximum(np.maximum(needed, least), SMALLEST_SCALE).astype(np.float32)
    return Quantization(tuple(map(float, scales)), (0,) * len(scales), axis if len(scales) > 1 else None)


def steps_of(rows: np.ndarray) -> np.ndarray:
    """The scale of each row. If all numbers of a row are multiples of a step, a scale that keeps them exact, the finest
    for the sake of biases; else the scale that makes the row's largest number LARGEST_WEIGHT."""
    largest = np.abs(rows).max(axis=1)
    steps, left = largest / LARGEST_WEIGHT, np.flatnonzero(largest)
    for count in (LARGEST_WEIGHT, LARGEST_WEIGHT + 1, *range(LARGEST_WEIGHT - 1, 0, -1)):
        sampled = left[_are_multiples(rows[left, :SAMPLED], largest[left] / count)]
        found = sampled[_are_multiples(rows[sampled], largest[sampled] / count)]
        steps[found] = largest[found] / count
        left = np.setdiff1d(left, found)
    return steps


SAMPLED, WHOLE_WITHIN = 32, 1e-4
"""Numbers of a row that are tested first; largest distance of a multiple from an integer, by rounding in floats."""


def _are_multiples(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """True for each row whose numbers are all integers of int8 times the step."""
    counts = rows / steps[:, np.newaxis]
    whole = np.rint(counts)
    return np.all((np.abs(counts - whole) < WHOLE_WITHIN) & (whole <= LARGEST_WEIGHT), axis=1)


def least_scales(bias: np.ndarray | None, channels: int, data: Quantization) -> np.ndarray:
    """The smallest weight scales that keep the bias within LARGEST_BIAS."""
    if bias is None:
        return np.zeros(channels)
    return np.abs(np.ravel(bias)) / (data.scale * LARGEST_BIAS)


def of_constant(value: np.ndarray) -> Quantization:
    return of_activation(ObservedRange.of(value))


def quantised(value: np.ndarray, quantization: Quantization, dtype: str = "int8") -> np.ndarray:
    """Real numbers as integers in the range of `dtype`, stored in bytes."""
    scales, zero_points = quantization.arrays(value.ndim)
    return np.clip(np.rint(value / scales) + zero_points, *INTEGER_RANGES[dtype]).astype(np.int8)
