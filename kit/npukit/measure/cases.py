"""Cases: inputs to feed, and the expected outputs."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from npukit.arrays import load_arrays
from npukit.errors import NpukitError
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops import Quantize
from npukit.net.reference import evaluate
from npukit.net.tensor import Tensor
from npukit.quantize.calibration import labels_of

Inputs: TypeAlias = Path | str | np.ndarray | Mapping[str, np.ndarray]
"""A user's cases: an npz file, its arrays by name, or the array of the first input alone."""


@dataclass(frozen=True, eq=False)
class Cases:
    """Arrays for each input and each expected output, all with a leading axis of cases.

    `expected`: may lack unknown outputs. `labels`: the class of each case. `sequence`: for networks with states, the
    number of successive cases that are frames of one sequence, which starts from the initial states.
    """

    inputs: tuple[np.ndarray, ...]
    expected: dict[int, np.ndarray]
    labels: np.ndarray | None = None
    sequence: int | None = None
    in_time: bool = False
    """The user's arrays have an axis of time after the axis of cases."""

    @property
    def count(self) -> int:
        return len(self.inputs[0])

    @property
    def length(self) -> int:
        """Cases in a sequence: one without states."""
        return self.sequence or 1

    def begins(self, case: int) -> bool:
        """True if a case starts from the initial states."""
        return self.sequence is not None and case % self.sequence == 0

    def given(self, output: np.ndarray) -> np.ndarray:
        """An output of all cases, with the same leading axes as the user's inputs."""
        return output.reshape(-1, self.length, *output.shape[1:]) if self.in_time else output


def rounds(count: int, frames: int) -> list[tuple[int, ...]]:
    """The numbers of `count` cases in batches of `frames`. The first cases fill up the last batch."""
    return [tuple(case % count for case in range(first, first + frames)) for first in range(0, count, frames)]


def expecting(net: Net, cases: Cases) -> Cases:
    """The cases with the reference's outputs as expectation."""
    outputs = stack([[values[name] for name in net.outputs] for values in reference_of(net, cases)])
    return replace(cases, expected=dict(enumerate(outputs)))


def reference_of(net: Net, cases: Cases) -> Iterator[dict[str, np.ndarray]]:
    """The reference's values of every case in turn."""
    values: dict[str, np.ndarray] | None = None
    for case in range(cases.count):
        before = None if cases.begins(case) else values
        yield (values := evaluate(net, [array[case] for array in cases.inputs], before))


def sequences(cases: Cases, frames: int) -> list[list[tuple[int, ...]]]:
    """The cases in batches of `frames`, grouped by sequence."""
    every = rounds(cases.count, frames)
    return [every[first : first + cases.length] for first in range(0, len(every), cases.length)]


def first_cases(cases: Cases, count: int | None) -> Cases:
    """The first `count` cases, or all."""
    if count is not None and count < 1:
        raise NpukitError(f"{count} cases are none to run", tries=["--cases 1"])
    end = None if count is None else count * cases.length
    return replace(
        cases,
        inputs=tuple(array[:end] for array in cases.inputs),
        expected={index: array[:end] for index, array in cases.expected.items()},
        labels=None if cases.labels is None else cases.labels[:end],
    )


def as_stream(cases: Cases, net: Net) -> Cases:
    """The cases as the frames of one sequence."""
    if not net.states:
        raise NpukitError(f"{net.name} keeps nothing from frame to frame: its cases are no stream")
    if cases.in_time:
        raise NpukitError(
            f"each case is a stream of {cases.length} frames already", tries=["leave --stream out", "one axis less"]
        )
    return replace(cases, sequence=cases.count)


def tile_digest(value: np.ndarray, box: Box, arrangement: Arrangement | None) -> int:
    """CRC-32 of a part of a tensor, over its bytes in a PE's memory: dense, or as arranged."""
    if arrangement:
        return zlib.crc32(arrangement.payload(value))
    part = value[box.slices]
    return zlib.crc32(np.ascontiguousarray(part).tobytes())


def load_cases(given: Inputs, net: Net, expect: str | None) -> Cases:
    """The cases of an npz: `in0`, `in1`, ..., and, if there, `out0`, ... or the array `expect`."""
    if isinstance(given, str | Path):
        path, arrays = str(given), load_arrays(Path(given))
    else:
        named = given if isinstance(given, Mapping) else {"in0": given}
        path, arrays = "what was given", {name: np.asarray(array) for name, array in named.items()}
    timed = [_input(arrays, path, net, i) for i in range(len(net.inputs))]
    times = {time for _, time in timed}
    if len(times) > 1:
        raise NpukitError(f"{path}: its inputs have not the same number of frames in time")
    inputs, (time,) = tuple(array for array, _ in timed), times
    if expect and expect not in arrays:
        raise NpukitError(f"{path} has no array {expect}", tries=[f"one of: {', '.join(sorted(arrays))}"])
    names = {0: expect} if expect else {i: f"out{i}" for i in range(len(net.outputs))}
    count = len(inputs[0])
    for index, array in enumerate(inputs):
        if len(array) != count:
            raise NpukitError(f"{path} has {count} cases of in0 and {len(array)} of in{index}")
    expected = {i: _expected(arrays[name], name, path, net, i, count) for i, name in names.items() if name in arrays}
    sequence = (time or 1) if net.states else None
    return Cases(inputs, expected, labels_of(arrays, path, count) if time is None else None, sequence, time is not None)


def _expected(array: np.ndarray, name: str, path: str, net: Net, index: int, count: int) -> np.ndarray:
    tensor = net.tensor(net.outputs[index])
    if array.ndim == 0 or array.size != count * tensor.elements:
        raise NpukitError(
            f"{name} in {path} has the shape {array.shape}, {count} cases of the model's output {tensor.name}"
            f" have {(count, *tensor.shape)}"
        )
    return array.reshape(count, *tensor.shape)


def _input(arrays: Mapping[str, np.ndarray], path: str, net: Net, index: int) -> tuple[np.ndarray, int | None]:
    """An input case by case, and the frames of each case if the array has an axis of time."""
    tensor, name = net.tensor(net.inputs[index]), f"in{index}"
    if name not in arrays:
        raise NpukitError(
            f"{path} has no array {name} for the input {tensor.name}", tries=[f"numpy.savez(FILE, {name}=...)"]
        )
    array = arrays[name]
    if str(array.dtype) != tensor.dtype:
        raise NpukitError(
            f"{name} in {path} is {array.dtype}, the model's input {tensor.name} is {tensor.dtype}",
            tries=_ways_to(tensor),
        )
    if array.ndim == 0 or not len(array):
        raise NpukitError(f"{path} has no cases of {name}: its shape is {array.shape}", tries=["cases first: (N, ...)"])
    if net.states and array.ndim == len(tensor.shape) + 2 and array[0, 0].size == tensor.elements:
        return array.reshape(-1, *tensor.shape), array.shape[1]
    if array[0].size != tensor.elements:
        raise NpukitError(
            f"{name} in {path} has cases of shape {array.shape[1:]}, the model's input has {tensor.shape}"
        )
    return array.reshape(len(array), *tensor.shape), None


def _ways_to(tensor: Tensor) -> list[str]:
    """The remedy for an array of the wrong type: an expression that converts numbers to the tensor's type."""
    given = tensor.quantization
    if given is None or len(given.scales) > 1:
        return [f"array.astype({tensor.dtype!r})"]
    least, most = np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max
    rounded = f"numpy.rint(array / {given.scale:.9g} + {given.zero_point})"
    return [f"real numbers: numpy.clip({rounded}, {least}, {most}).astype({tensor.dtype!r})"]


# --- noise: drawn from a digest of the net's name, the same on every machine ---


def filled(net: Net, cases: Cases, frames: int, least: int = 1) -> Cases:
    """The cases, extended with noise to at least `least` and to a full last batch of `frames`. Sequences stay
    unchanged, as each frame follows from the frame before."""
    count = max(-(-cases.count // frames) * frames, least)
    if cases.sequence or count == cases.count:
        return cases
    more = (_like(net, name, given, count - cases.count) for name, given in zip(net.inputs, cases.inputs, strict=True))
    return replace(cases, inputs=tuple(map(np.concatenate, zip(cases.inputs, more, strict=True))))


def _like(net: Net, name: str, given: np.ndarray, count: int) -> np.ndarray:
    """Noise for an input. Integers that may be indices are drawn from the given values."""
    if not counts(net.tensor(name)):
        return noise(net, name, count, "filling")
    known = np.unique(given)
    return known[drawn(net, name, count, "filling", "uint16") % len(known)]


def noise(net: Net, name: str, count: int, salt: str = "") -> np.ndarray:
    """Integers over the whole range of the input's type; floats from -8 to 8, or over the range of their quantisation.
    Integers without quantisation get 0 or 1, because they may be indices."""
    tensor = net.tensor(name)
    if tensor.dtype == "float32":
        return _within(net, name, drawn(net, name, count, salt, "int16") / 4096).astype(np.float32)
    values = drawn(net, name, count, salt, "uint8" if counts(tensor) else tensor.dtype)
    return (values & 1).astype(tensor.dtype) if counts(tensor) else values


def counts(tensor: Tensor) -> bool:
    """True for integers without quantisation, which may be indices or tokens."""
    return tensor.quantization is None and tensor.dtype in ("bool", "int32", "int64")


def drawn(net: Net, name: str, count: int, salt: str, dtype: str) -> np.ndarray:
    """Pseudo-random values of a type, for `count` cases of the input."""
    tensor, kind = net.tensor(name), np.dtype(dtype)
    raw = hashlib.shake_128(f"{net.name} {name}{salt}".encode()).digest(count * tensor.elements * kind.itemsize)
    return np.frombuffer(raw, kind).reshape(count, *tensor.shape)


def _within(net: Net, name: str, values: np.ndarray) -> np.ndarray:
    """Numbers from -8 to 8, scaled to the range of the op that quantises the input, if there is such an op."""
    op = next((each for each in net.ops if each.kind == Quantize.kind and each.inputs[0] == name), None)
    given = net.tensor(op.output).quantization if op else None
    if op is None or given is None:
        return values
    offset, step = (net.constants[each] for each in op.inputs[1:])
    return (values * 16 - given.zero_point) * step + offset


def stack(outputs: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, ...]:
    """Outputs case by case, stacked to one array for each output."""
    return tuple(np.stack(column) for column in zip(*outputs, strict=True))
