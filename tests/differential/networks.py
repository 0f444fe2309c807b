"""A random network of a cell: a format, a type, and a kind of op. The seed and the name of the cell define it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

Arrays: TypeAlias = list[np.ndarray]
Oracle: TypeAlias = Callable[[Path, Arrays], Arrays]
"""The outputs of a file for inputs. An oracle that does not know an op raises an exception."""

AS_IT_IS, IN_FLOAT, CALIBRATED = "as it is", "--float", "--calibration"
LITERT = "LiteRT"
FOUR_BITS = "int8-int4"
"""The class of networks with int8 activations and weights of 4 bits."""
CASES = 8
"""Cases of a network that npukit quantises: calibration data and compared inputs."""


@dataclass(frozen=True)
class Within:
    """The greatest accepted difference. A fact of `docs/compatibility.md`, or a property of the arithmetic."""

    steps: int = 0
    """Steps of a quantised output."""
    relative: float = 0.0
    """Part of the largest value of a float output."""
    decibels: float | None = None
    """Least signal over error, in place of the other two."""


@dataclass(frozen=True)
class Network:
    """A file, its inputs, and the implementations that know the outputs."""

    name: str
    data: bytes
    cases: Sequence[Arrays]
    oracles: Mapping[str, Oracle]
    reads: str = AS_IT_IS
    within: Within = Within()

    @property
    def file(self) -> str:
        return "model" + {"tflite": ".tflite", "onnx": ".onnx", "pytorch": ".pt2"}[self.name.split("/")[0]]


ROUGH = {
    *("celu", "ceil", "cumsum", "div", "exp", "floor", "l2_normalization", "log", "log_softmax", "logsoftmax", "power"),
    *("pad_v2", "reciprocal", "reducel2", "round", "rsqrt", "select", "sign", "square", "thresholdedrelu", "where"),
    *("groupnorm", "instancenorm", "layernorm", "norm", "batchnorm", "squared_difference", "reducesumsquare"),
}
"""Ops with jumps, poles or steep parts: an int8 step before them may become a large error."""


SOFTMAX_STEP = 1 / 256
"""npukit rounds a softmax to TFLite's scale, and an average pool to its input's, before the scale of the result."""


def of_int8(kinds: Sequence[str]) -> Within:
    """The accepted loss of a float chain that npukit quantises: each op of eight bits has 40 dB, few bits of it are
    left behind steep ops."""
    return Within(decibels=3 if ROUGH & set(kinds) else 20 if len(kinds) == 1 else 10)


Maker: TypeAlias = Callable[[np.random.Generator], Network]


def random_of(name: str, seed: int) -> np.random.Generator:
    """Random numbers of a cell. They stay the same if cells are added."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
