"""The values of a tile by the reference, with noise in all input elements outside the tile's needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.receptive import needs
from npukit.net.reference.interpreter import run_reference
from npukit.net.tensor import Tensor


def tile_values(net: Net, op: Op, output: Box, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The box `output` of the op's result, from exactly the required boxes of its activations."""
    names = tuple(net.activations(op))
    noise, inputs = np.random.default_rng(9), dict[str, np.ndarray]()
    for name, box, value in zip(names, needs(net, op, output), operands, strict=True):
        inputs.setdefault(name, _noise(noise, net.tensor(name)))[_places(box)] = value
    (whole,) = run_reference(replace(net.alone(op), inputs=tuple(inputs), states=()), list(inputs.values()))
    return whole[_places(output)]


def _places(box: Box) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in zip(box.start, box.stop, strict=True))


def _noise(random: np.random.Generator, tensor: Tensor) -> np.ndarray:
    return random.integers(0, 100, tensor.shape).astype(tensor.dtype)
