"""Arrays in, arrays out: the Python API takes NumPy arrays like a file of the same arrays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.errors import NpukitError

DIGITS = CHECKOUT / "examples/digits"


@pytest.mark.exhaustive
def test_an_array_is_the_first_input_and_outputs_are_arrays(tmp_path: Path) -> None:
    build = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=1)
    images = np.load(DIGITS / "digits.npz")["in0"][:4]
    (scores,) = api.run(build, inputs=images)
    (by_name,) = api.run(build, inputs={"in0": images})
    assert scores.shape == (4, *build.net().tensor(build.net().outputs[0]).shape)
    assert np.array_equal(scores, by_name)
    assert api.validate(build, inputs={"in0": images, "labels": scores.reshape(4, -1).argmax(axis=1)}).accuracy == 1


def test_what_is_wrong_with_an_array_is_told(tmp_path: Path) -> None:
    build = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=1)
    with pytest.raises(NpukitError, match="in0 in what was given is float64") as wrong:
        api.run(build, inputs=np.zeros((1, 8, 8, 1)))
    (way,) = wrong.value.tries
    made = eval(way.partition(": ")[2], {"numpy": np, "array": np.array([0.0, 1.0, 7.0])})
    assert (made.dtype, made.tolist()) == (np.int8, [-128, 127, 127])


def test_a_build_is_told_in_a_line_and_known_to_be_built_over(tmp_path: Path) -> None:
    build = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=1)
    assert repr(build) == f"<Build {tmp_path / 'out'}: digits_int8 on pe-mesh, 1 PEs>"
    older = replace(build, manifest=build.manifest.model_copy(update={"build_id": "0" * 32}))
    with pytest.raises(NpukitError, match="has been built anew"):
        api.run(older)
