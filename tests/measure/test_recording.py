"""Mapping of recorded calls to the plan's steps."""

from __future__ import annotations

import numpy as np
import pytest

from npukit.errors import NpukitError
from npukit.measure.recording import _Windows


def test_a_wait_between_two_layers_belongs_to_the_one_before() -> None:
    windows = _Windows(np.array([3, 5]), np.array([10, 30]), np.array([20, 40]))
    assert windows.begun_at([10, 19, 25, 30, 45]) == [3, 3, 3, 5, 5]
    assert windows.steps_at([10, 20, 30]) == [3, 3, 5]


def test_work_that_no_layer_of_the_plan_does_is_an_error() -> None:
    windows = _Windows(np.array([3, 5]), np.array([10, 30]), np.array([20, 40]))
    assert windows.steps_at([15, 35]) == [3, 5]
    for time in (25, 50):
        with pytest.raises(NpukitError, match="does not follow the plan of its build"):
            windows.steps_at([time])
