"""Functions of a number with constants by channel: depthwise convolutions of one pixel, or tables by channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from npukit.errors import NpukitError
from npukit.net.importer.assembly import AxesView
from npukit.net.importer.site import Site
from npukit.net.ops import DepthwiseConv2d, Lookup
from npukit.net.passes.tabled import MOST_TABLE_BYTES
from npukit.net.requantize import WEIGHTS_OF_A_LINE
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization

if TYPE_CHECKING:
    from npukit.net.importer.walk import Walk

_IMAGE = 4
_FINEST = 2.0**-12
"""The smallest unit of a filter's sums, in units of its results: smaller ones need more than the bits of a bias."""
_CLOSE = 1e-3
"""Difference from a line, in units of the results, counted as none."""


def filtered(walk: Walk, site: Site, view: AxesView, results: np.ndarray) -> AxesView:
    """Import a function by channel. `results`: real numbers, [256, ...], with one axis of channels as in the model."""
    (axis,) = (axis for axis, size in enumerate(results.shape[1:]) if size > 1)
    order = (*(each for each in view.order if each != axis), axis)
    data = walk.assembly.arranged(view, order)
    source, steps = walk.assembly.tensors[data], results.reshape(len(EVERY), -1) / np.float64(site.quantization.scale)
    assert source.quantization is not None
    if source.dtype != "int8" or source.shape[-1] != steps.shape[1]:
        raise NpukitError("it is computed in float with constants of another shape")
    line = _line(steps, EVERY - source.quantization.zero_point)
    if line is not None and len(source.shape) == _IMAGE and source.shape[0] == 1:
        return _as_filter(walk, site, AxesView(data, order), *line)
    if steps.shape[1] * len(EVERY) > MOST_TABLE_BYTES:
        raise NpukitError("it is a function of a number with constants of many channels")
    whole = np.rint(np.nan_to_num(steps)) + site.quantization.zero_point
    table = np.ascontiguousarray(np.clip(whole, *site.clamp).astype(np.int8).T)
    name = walk.assembly.new_name(Lookup.kind)
    return walk.add(site, Lookup(), [data, walk.assembly.constant(f"{name}_table", table, None)], order, name)


def _line(steps: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The slope and the offset of each channel's results, or None if they do not lie on a line."""
    slopes = (steps[-1] - steps[0]) / (values[-1] - values[0])
    offsets = steps[0] - slopes * values[0]
    close = np.abs(values[:, None] * slopes + offsets - steps).max() <= _CLOSE
    return (slopes, offsets) if close else None


def _units(slopes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The unit of each channel's sums, with a weight within the limits, whose multiple is nearest to the offset."""
    units = np.maximum(np.abs(slopes) / np.array(WEIGHTS_OF_A_LINE)[:, None], _FINEST)
    wrong = np.abs(np.rint(offsets / units) * units - offsets)
    return units[wrong.argmin(axis=0), np.arange(len(slopes))]


def _as_filter(walk: Walk, site: Site, view: AxesView, slopes: np.ndarray, offsets: np.ndarray) -> AxesView:
    source, name = walk.assembly.scaled(view.name), walk.assembly.new_name(DepthwiseConv2d.kind)
    units = _units(slopes, offsets)
    weights, biases = np.rint(slopes / units), np.rint(offsets / units)
    if np.abs(biases).max() >= 1 << 31:
        raise NpukitError("it adds more than its result can hold")
    scales = tuple((units * site.quantization.scale / source.scale).tolist())
    filters = Quantization(scales, (0,) * len(scales), 3)
    shaped = weights.astype(np.int8).reshape(1, 1, 1, -1)
    inputs = [
        view.name,
        walk.assembly.constant(f"{name}_weights", shaped, filters),
        walk.assembly.constant(f"{name}_bias", biases.astype(np.int32), None),
    ]
    return walk.add(site, DepthwiseConv2d(clamp=site.clamp), inputs, view.order, name)
