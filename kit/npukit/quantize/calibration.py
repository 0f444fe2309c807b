"""Calibration data: real inputs of a float model, and optional labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from npukit.arrays import load_arrays
from npukit.errors import NpukitError

LABELS = "labels"


@dataclass(frozen=True)
class WantedInput:
    """An input of the model."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Calibration:
    """An array for each input, with a leading axis of cases. `labels`: a number for each case."""

    inputs: tuple[np.ndarray, ...]
    labels: np.ndarray | None = None

    @property
    def count(self) -> int:
        return len(self.inputs[0])

    def part(self, cases: Collection[int]) -> Calibration:
        """Some of the cases, without labels."""
        return Calibration(tuple(array[list(cases)] for array in self.inputs))

    def cases(self) -> Iterator[list[np.ndarray]]:
        return ([array[case] for array in self.inputs] for case in range(self.count))


def load_calibration(path: Path, wanted: Sequence[WantedInput]) -> Calibration:
    """Loads `in0`, `in1`, ... and optional `labels` from an npz file, or from all npz files of a folder."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise NpukitError(f"{path} has no npz files to calibrate with", tries=["numpy.savez(FILE, in0=...)"])
    parts, labels = list[list[np.ndarray]](), list[np.ndarray]()
    for file in files:
        arrays = load_arrays(file)
        inputs = [_input(arrays, file, f"in{index}", each) for index, each in enumerate(wanted)]
        if len({len(array) for array in inputs}) != 1 or not len(inputs[0]):
            raise NpukitError(f"{file}: its inputs have no cases, or not the same number of them")
        given = labels_of(arrays, file, len(inputs[0]))
        parts.append(inputs)
        labels += [] if given is None else [given]
    whole = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Calibration(whole, np.concatenate(labels) if len(labels) == len(parts) else None)


def _input(arrays: dict[str, np.ndarray], path: Path, key: str, wanted: WantedInput) -> np.ndarray:
    if key not in arrays:
        tries = [f"numpy.savez(FILE, {key}=...)", f"it has: {', '.join(sorted(arrays)) or 'nothing'}"]
        raise NpukitError(f"{path} has no array {key} for the input {wanted.name}", tries=tries)
    array = arrays[key]
    if array.dtype.kind != np.dtype(wanted.dtype).kind:
        raise NpukitError(f"{key} in {path} is {array.dtype}, the model's input {wanted.name} is {wanted.dtype}")
    if array.ndim == 0 or prod(array.shape[1:]) != prod(wanted.shape):
        case = list(array.shape[1:])
        raise NpukitError(f"{key} in {path} has cases of shape {case}, the model's input has {list(wanted.shape)}")
    with np.errstate(over="ignore"):
        cases = array.reshape(len(array), *wanted.shape).astype(wanted.dtype)
    if not np.all(np.isfinite(cases)):
        raise NpukitError(f"{key} in {path} has values that are infinite or no numbers as {wanted.dtype}")
    return cases


def labels_of(arrays: Mapping[str, np.ndarray], path: Path | str, count: int) -> np.ndarray | None:
    """The labels of the cases; None if the file has none. Text names the cases and is no label."""
    labels = arrays.get(LABELS)
    if labels is None or labels.dtype.kind in "SU":
        return None
    if labels.shape != (count,) or labels.dtype.kind not in "iu":
        raise NpukitError(f"labels in {path} are not {count} whole numbers, one a case")
    return labels
