"""A test per user error: a clear line, remedies, the right status, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from frontend import onnx_models
from helpers import CHECKOUT
from npukit.cli.main import app

MODEL = DIGITS / "digits_int8.tflite"


@dataclass(frozen=True)
class Said:
    status: int
    output: str
    errors: str


def npukit(*words: object, folder: Path, **environment: str) -> Said:
    """Run the command in this process, in `folder`."""
    with chdir(folder), mock.patch.dict(os.environ, environment):
        done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return Said(done.exit_code, done.stdout, done.stderr)


def npukit_apart(*words: object, folder: Path) -> Said:
    """Run the command in a separate process."""
    command = [sys.executable, "-c", "from npukit.cli.main import run; run()", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "kit")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return Said(done.returncode, done.stdout, done.stderr)


def check(said: Said, status: int, says: str, folder: Path) -> None:
    assert said.status == status, said.errors
    assert says in said.errors
    assert sum(line.startswith("error: ") for line in said.errors.splitlines()) == 1
    assert "Traceback" not in said.errors
    assert not (folder / "out").exists()
    assert not list(folder.glob(".out*"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", [npukit, npukit_apart])
def test_no_such_file(command: Callable[..., Said], tmp_path: Path) -> None:
    check(command("build", "absent.tflite", "-o", "out", folder=tmp_path), 1, "absent.tflite", tmp_path)


def test_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "notes.tflite").write_text("shopping: milk, eggs")
    check(npukit("build", "notes.tflite", "-o", "out", folder=tmp_path), 1, "notes.tflite", tmp_path)


def test_truncated_model(tmp_path: Path) -> None:
    (tmp_path / "cut.tflite").write_bytes(MODEL.read_bytes()[:3000])
    check(npukit("build", "cut.tflite", "-o", "out", folder=tmp_path), 1, "cut.tflite", tmp_path)


def test_float_model(tmp_path: Path) -> None:
    done = npukit("build", DIGITS / "digits_float.onnx", "-o", "out", folder=tmp_path)
    check(done, 1, "float", tmp_path)
    assert "Things to try:" in done.errors


def test_unknown_board(tmp_path: Path) -> None:
    done = npukit("build", MODEL, "--board", "pdp-11", "-o", "out", folder=tmp_path)
    check(done, 1, "board pdp-11 is not known", tmp_path)
    assert "pe-mesh" in done.errors


def test_unknown_verb(tmp_path: Path) -> None:
    assert npukit("bake", MODEL, folder=tmp_path).status == 2


def test_unknown_option(tmp_path: Path) -> None:
    assert npukit("build", MODEL, "--faster", "-o", "out", folder=tmp_path).status == 2


def test_compiler_that_is_not_there(tmp_path: Path) -> None:
    done = npukit("build", MODEL, "--toolchain", "gcc", "-o", "out", folder=tmp_path, PATH="/nowhere")
    check(done, 1, "arm-none-eabi-gcc", tmp_path)
    assert "Things to try:" in done.errors


@pytest.mark.exhaustive
def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = npukit("build", MODEL, "-o", "file/out", folder=tmp_path)
    check(done, 1, "cannot write to", tmp_path)


@pytest.mark.exhaustive
def test_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = npukit("build", MODEL, "-o", "mine", folder=tmp_path)
    check(done, 1, "mine exists and is not a build folder", tmp_path)
    assert "remove" not in done.errors
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_model_larger_than_the_memory(tmp_path: Path) -> None:
    graph = onnx_models.Graph()
    graph.node("MaxPool", [graph.dequantized("x", 0.1, 0)], "pooled", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph.quantized("pooled", 0.1, 0, "y")
    path = onnx_models.saved(graph.model({"x": [1, 4, 180, 180]}, "y"), tmp_path)
    done = npukit("build", path, "--pes", "1", "-o", "out", folder=tmp_path)
    check(done, 3, "bytes more than PE 0 of pe-mesh has in its SRAM of 131,072: ", tmp_path)
    assert "Things to try:" in done.errors


def test_strict_build_with_an_op_on_the_core(tmp_path: Path) -> None:
    check(npukit("build", MODEL, "--strict", "-o", "out", folder=tmp_path), 1, "softmax", tmp_path)


def test_not_a_build_folder(tmp_path: Path) -> None:
    check(npukit("validate", tmp_path, folder=tmp_path), 1, "is not a build folder", tmp_path)


def test_build_that_was_tampered_with(tmp_path: Path) -> None:
    built = shared_build(MODEL, tmp_path / "built", pes=1)
    plan = built.folder / "plan.txt"
    plan.write_text(plan.read_text().replace("5", "6", 1))
    check(npukit("validate", "built", folder=tmp_path), 1, "plan.txt is not what the build left there", tmp_path)


def test_board_that_does_not_run_there(tmp_path: Path) -> None:
    shared_build(MODEL, tmp_path / "built", pes=1)
    check(npukit("validate", "built", "--on", "qemu", folder=tmp_path), 1, "does not run on qemu", tmp_path)


def test_inputs_of_another_type(tmp_path: Path) -> None:
    shared_build(MODEL, tmp_path / "built", pes=1)
    np.savez(tmp_path / "floats.npz", in0=np.zeros((1, 1, 8, 8, 1), np.float32))
    done = npukit("validate", "built", "--inputs", "floats.npz", folder=tmp_path)
    check(done, 1, "in0 in floats.npz is float32, the model's input", tmp_path)


@pytest.mark.parametrize("verb", ["build", "fit", "validate", "run", "bench", "boards", "doctor"])
def test_every_verb_explains_itself(verb: str, tmp_path: Path) -> None:
    done = npukit(verb, "--help", folder=tmp_path)
    assert done.status == 0
    assert "Example: npukit" in done.output
