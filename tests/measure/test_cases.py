"""Cases in a user's file: arrays of equal counts, of the model's shapes, at least 1 case."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from net.small_nets import image_net, remembering_net
from npukit.errors import NpukitError
from npukit.measure.cases import as_stream, first_cases, load_cases, sequences
from npukit.net.net import Net

NET = image_net()


def saved(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "in.npz", **arrays)  # pyright: ignore[reportArgumentType]
    return folder / "in.npz"


def shaped(net: Net, name: str, count: int) -> np.ndarray:
    tensor = net.tensor(name)
    return np.zeros((count, *tensor.shape), tensor.dtype)


def test_cases_are_counted(tmp_path: Path) -> None:
    cases = load_cases(saved(tmp_path, in0=shaped(NET, NET.inputs[0], 3)), NET, None)
    assert cases.count == 3
    assert first_cases(cases, 2).count == 2
    with pytest.raises(NpukitError, match="0 cases are none to run"):
        first_cases(cases, 0)


@pytest.mark.parametrize("shape", [(0,), ()])
def test_no_cases_are_named_as_that(tmp_path: Path, shape: tuple[int, ...]) -> None:
    tensor = NET.tensor(NET.inputs[0])
    array = np.zeros((*shape, *tensor.shape) if shape else (), tensor.dtype)
    with pytest.raises(NpukitError, match=r"in\.npz has no cases of in0: its shape is " + re.escape(str(array.shape))):
        load_cases(saved(tmp_path, in0=array), NET, None)


def test_of_a_network_with_states_cases_may_have_frames_in_time(tmp_path: Path) -> None:
    net = remembering_net()
    inputs, outputs = np.zeros((2, 5, 1, 16), np.int8), np.zeros((2, 5, 1, 64), np.int8)
    cases = load_cases(saved(tmp_path, in0=inputs, out0=outputs, labels=np.array([0, 1])), net, None)
    assert (cases.count, cases.length, cases.labels) == (10, 5, None)
    assert [case for case in range(10) if cases.begins(case)] == [0, 5]
    assert sequences(cases, 1) == [[(case,) for case in range(first, first + 5)] for first in (0, 5)]
    assert cases.given(cases.expected[0]).shape == outputs.shape
    assert first_cases(cases, 1).count == 5
    with pytest.raises(NpukitError, match="each case is a stream of 5 frames already"):
        as_stream(cases, net)


def test_the_cases_of_a_network_with_states_begin_anew_unless_they_are_a_stream(tmp_path: Path) -> None:
    net = remembering_net()
    cases = load_cases(saved(tmp_path, in0=np.zeros((3, 1, 16), np.int8)), net, None)
    assert all(map(cases.begins, range(3)))
    assert [as_stream(cases, net).begins(case) for case in range(3)] == [True, False, False]
    with pytest.raises(NpukitError, match="keeps nothing from frame to frame"):
        as_stream(load_cases(saved(tmp_path, in0=shaped(NET, NET.inputs[0], 3)), NET, None), NET)


def test_what_is_expected_has_as_many_cases(tmp_path: Path) -> None:
    inputs, outputs = shaped(NET, NET.inputs[0], 2), shaped(NET, NET.outputs[0], 1)
    with pytest.raises(NpukitError, match=r"out0 in .* has the shape"):
        load_cases(saved(tmp_path, in0=inputs, out0=outputs), NET, None)
