"""Networks on every engine and board: bit for bit equal to the references."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, models, need
from npukit import api

PLACES = {
    "one PE": ("pe-mesh", {"pes": 1}),
    "mesh": ("pe-mesh", {"pes": 16, "toolchain": "zig"}),
    "core only": ("pe-mesh", {"engine": "cpu", "pes": 1}),
    "QEMU": ("mps2-an386", {}),
    "compiled by zig": ("pe-mesh", {"pes": 1, "toolchain": "zig"}),
}
LARGE = [
    ("ad01_int8", "QEMU"),
    ("ad01_int8", "mesh"),
    ("pretrainedResnet_quant", "mesh"),
    ("vww_96_int8", "mesh"),
    ("vww_96_int8", "QEMU"),
    ("pretrainedResnet_quant", "QEMU"),
]
"""Models larger than a PE."""
SMALL = [
    *product(["kws_ref_model"], ["mesh", "QEMU", "core only"]),
    *product(["kws_ref_model"], ["one PE", "compiled by zig"]),
    *product(["hello_world_int8"], PLACES),
]


QUICK, ALL = "two cases", "all cases"


def with_cases(places: Sequence[tuple[str, str]], quick: int) -> list[Any]:
    """`places` with two cases each; on the mesh and on one PE also with all cases, which take minutes elsewhere."""
    two = [(*each, QUICK) for each in places]
    return first_of([*two, *((*each, ALL) for each in places if each[1] in ("mesh", "one PE"))], quick)


def check(name: str, place: str, cases: str, folder: Path) -> None:
    board, options = PLACES[place]
    if place == "QEMU":
        need("qemu-system-arm")
    shared_build(models() / f"{name}.tflite", folder, board, **options)
    found = api.validate(
        folder, inputs=models() / f"{name}.npz", expect="out0_tflm", cases=2 if cases == QUICK else None
    )
    assert found.passed, found.mismatches


@pytest.mark.parametrize(("name", "place", "cases"), with_cases(SMALL, 2))
def test_small_models_equal_tflite_micro(name: str, place: str, cases: str, tmp_path: Path) -> None:
    check(name, place, cases, tmp_path / "out")


@pytest.mark.parametrize(("name", "place", "cases"), with_cases(LARGE, 2))
def test_models_larger_than_a_pe_equal_tflite_micro(name: str, place: str, cases: str, tmp_path: Path) -> None:
    check(name, place, cases, tmp_path / "out")


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", first_of(list(PLACES), 4))
def test_digits_equal_the_reference(place: str, tmp_path: Path) -> None:
    _check_digits("digits_int8.tflite", place, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("place", first_of(list(PLACES)))
def test_digits_from_onnx_equal_the_reference(place: str, tmp_path: Path) -> None:
    """The same integers from another format."""
    _check_digits("digits_qdq.onnx", place, tmp_path)


def _check_digits(name: str, place: str, tmp_path: Path) -> None:
    board, options = PLACES[place]
    if place == "QEMU":
        need("qemu-system-arm")
    shared_build(DIGITS / name, tmp_path / "out", board, **options)
    found = api.validate(tmp_path / "out")
    assert found.passed, found.mismatches


@pytest.mark.exhaustive
def test_digits_are_read_right_on_the_mesh(tmp_path: Path) -> None:
    shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=16, toolchain="zig")
    (scores,) = api.run(tmp_path / "out", inputs=DIGITS / "digits.npz")
    labels = np.load(DIGITS / "digits.npz")["labels"]
    assert (scores.reshape(len(labels), -1).argmax(1) == labels).mean() > 0.97


@pytest.mark.exhaustive
def test_keywords_are_heard_as_well_as_the_reference_hears_them(tmp_path: Path) -> None:
    with np.load(models() / "kws_accuracy.npz") as file:
        samples, labels = file["in0"][:100], file["labels"][:100]
    np.savez(tmp_path / "samples.npz", in0=samples)
    shared_build(models() / "kws_ref_model.tflite", tmp_path / "out", pes=16)
    found = api.validate(tmp_path / "out", inputs=tmp_path / "samples.npz")
    assert found.passed
    (scores,) = api.run(tmp_path / "out", inputs=tmp_path / "samples.npz")
    assert (scores.reshape(100, -1).argmax(1) == labels).mean() > 0.85


def test_instructions_agree_with_qemu(tmp_path: Path) -> None:
    """The same C on two emulators. The counts differ by each board's own few instructions for counting."""
    need("qemu-system-arm")
    model = models() / "kws_ref_model.tflite"
    shared_build(model, tmp_path / "ours", engine="cpu", pes=1)
    shared_build(model, tmp_path / "theirs", "mps2-an386")
    ours, theirs = api.bench(tmp_path / "ours"), api.bench(tmp_path / "theirs")
    assert theirs.latency_cycles is None
    assert ours.instructions == pytest.approx(theirs.instructions, rel=0.001)
