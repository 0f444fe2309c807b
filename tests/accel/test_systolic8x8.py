"""The example of a third party's accelerator: from a folder, as an installed package, on the core; then removed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from accel.boards import with_accelerator
from end_to_end.builds import DIGITS, build
from helpers import CHECKOUT, first_of, models, needs
from npukit import api
from npukit.project.build_folder import Build

EXAMPLE = CHECKOUT / "examples/accelerators/systolic8x8"
BOARD = str(EXAMPLE / "systolic8x8.toml")
DIGITS_MODEL = DIGITS / "digits_int8.tflite"


def engines(built: Build) -> dict[str, str]:
    return {op["name"]: op["engine"] for op in built.manifest.summary["ops"]}


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The digits with every possible op on the array, including ops that the core computes faster."""
    return build(DIGITS_MODEL, tmp_path_factory.mktemp("systolic") / "out", BOARD, pes=1, engine="systolic8x8")


@pytest.mark.exhaustive
def test_digits_equal_the_reference(digits: Build) -> None:
    found = api.validate(digits.folder, inputs=DIGITS / "digits.npz", cases=3)
    assert found.passed, found.mismatches
    assert engines(digits)["conv2d_2"] == engines(digits)["dense_0"] == "systolic8x8"


@pytest.mark.parametrize("pes", first_of([1, 4]))
def test_keyword_spotting_equals_tflite_micro(pes: int, tmp_path: Path) -> None:
    folder = models()
    built = build(folder / "kws_ref_model.tflite", tmp_path / "out", BOARD, pes=pes, engine="systolic8x8")
    found = api.validate(built.folder, inputs=folder / "kws_ref_model.npz", expect="out0_tflm", cases=3)
    assert found.passed, found.mismatches
    assert sum(engine == "systolic8x8" for engine in engines(built).values()) == 6


def test_every_op_on_the_core_says_why(digits: Build) -> None:
    reasons = {op["op"]: op["reason"] for op in digits.manifest.summary["ops"] if op["engine"] == "cpu"}
    assert reasons["add"] == "the systolic array multiplies matrices, and add is none"
    assert all(reasons.values())


@pytest.mark.exhaustive
def test_every_layer_is_predicted(digits: Build) -> None:
    """Within 15 percent: the driver is C, for which gcc and zig give different cycles."""
    layers = [layer for layer in api.bench(digits.folder, frames=1).layers if layer.engine == "systolic8x8"]
    assert len(layers) == 4
    for layer in layers:
        assert layer.cycles is not None
        assert abs(layer.predicted_cycles - layer.cycles) < 0.15 * layer.cycles, layer


@needs("qemu-system-arm")
def test_without_the_hardware_the_stand_in_computes_the_same(tmp_path: Path) -> None:
    figures = ("[accelerator.figures]", *(f"{k} = {v}" for k, v in _figures().items()))
    plugin = (f'plugin = "{(EXAMPLE / "systolic8x8").as_posix()}"', *figures)
    board = with_accelerator(tmp_path, "mps2-an386", 'name = "systolic8x8"', *plugin)
    built = build(DIGITS_MODEL, tmp_path / "out", board)
    assert "systolic8x8" in engines(built).values()
    assert (built.folder / "project/firmware/engines/systolic8x8_on_core/systolic8x8_on_core.c").is_file()
    found = api.validate(built.folder)
    assert found.engine == "qemu"
    assert found.passed, found.mismatches


def _figures() -> dict[str, int]:
    return {"scratchpad_bytes": 4096, "accumulator_rows": 5, "port_bytes": 16, "setup_cycles": 12}


@pytest.mark.exhaustive
def test_a_build_needs_the_plug_in_that_it_was_made_with(tmp_path: Path) -> None:
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy)
    built = build(DIGITS_MODEL, tmp_path / "out", str(copy / "systolic8x8.toml"), pes=1)
    (record,) = built.manifest.accelerators
    assert (record.name, record.version) == ("systolic8x8", "1.0")
    assert str(tmp_path) not in (built.folder / "npukit.json").read_text()
    assert not list(built.folder.rglob("systolic8x8_model*"))
    one_case = ("validate", "out", "--cases", "1")
    unnamed = npukit(*one_case, folder=tmp_path)
    assert "accelerator systolic8x8, which no plug-in provides" in unnamed.stderr
    named = npukit(*one_case, "--board", "example/systolic8x8.toml", folder=tmp_path)
    assert named.returncode == 0, named.stderr
    (model,) = copy.rglob("*_model.c")
    model.write_text(model.read_text() + "\n")
    other = npukit(*one_case, "--board", "example/systolic8x8.toml", folder=tmp_path)
    assert "the plug-in systolic8x8 is not that of the build" in other.stderr


def npukit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    code = "from npukit.cli.main import run; run()"
    paths = os.pathsep.join((str(CHECKOUT / "kit"), str(folder / "site")))
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
