"""One test a way to be wrong: one clear line, what to try, the right status, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from frontend import onnx_models
from helpers import CHECKOUT

MODEL = DIGITS / "digits_int8.tflite"


def npukit(*words: object, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "from npukit.cli.main import run; run()"
    paths = {"PYTHONPATH": str(CHECKOUT / "kit")}
    command = [sys.executable, "-c", code, *map(str, words)]
    everything = {**os.environ, **paths, **environment}
    return subprocess.run(command, cwd=folder, env=everything, capture_output=True, text=True, timeout=120)


def check(done: subprocess.CompletedProcess[str], status: int, says: str, folder: Path) -> None:
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert sum(line.startswith("error: ") for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()
    assert not list(folder.glob(".out*"))


def test_no_such_file(tmp_path: Path) -> None:
    check(npukit("build", "absent.tflite", "-o", "out", folder=tmp_path), 1, "absent.tflite", tmp_path)


def test_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "notes.tflite").write_text("shopping: milk, eggs")
    check(npukit("build", "notes.tflite", "-o", "out", folder=tmp_path), 1, "notes.tflite", tmp_path)


def test_truncated_model(tmp_path: Path) -> None:
    (tmp_path / "cut.tflite").write_bytes(MODEL.read_bytes()[:3000])
    check(npukit("build", "cut.tflite", "-o", "out", folder=tmp_path), 1, "cut.tflite", tmp_path)


def test_float_model(tmp_path: Path) -> None:
    done = npukit("build", DIGITS / "digits_float.onnx", "-o", "out", folder=tmp_path)
    check(done, 1, "float", tmp_path)
    assert "Things to try:" in done.stderr


def test_unknown_board(tmp_path: Path) -> None:
    done = npukit("build", MODEL, "--board", "pdp-11", "-o", "out", folder=tmp_path)
    check(done, 1, "board pdp-11 is not known", tmp_path)
    assert "pe-mesh" in done.stderr


def test_unknown_verb(tmp_path: Path) -> None:
    assert npukit("bake", MODEL, folder=tmp_path).returncode == 2


def test_unknown_option(tmp_path: Path) -> None:
    assert npukit("build", MODEL, "--faster", "-o", "out", folder=tmp_path).returncode == 2


def test_compiler_that_is_not_there(tmp_path: Path) -> None:
    done = npukit("build", MODEL, "--toolchain", "gcc", "-o", "out", folder=tmp_path, PATH="/nowhere")
    check(done, 1, "arm-none-eabi-gcc", tmp_path)
    assert "Things to try:" in done.stderr


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = npukit("build", MODEL, "-o", "file/out", folder=tmp_path)
    check(done, 1, "cannot write to", tmp_path)


def test_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = npukit("build", MODEL, "-o", "mine", folder=tmp_path)
    check(done, 1, "mine exists and is not a build folder", tmp_path)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_model_larger_than_the_memory(tmp_path: Path) -> None:
    graph = onnx_models.Graph()
    graph.node("MaxPool", [graph.dequantized("x", 0.1, 0)], "pooled", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    graph.quantized("pooled", 0.1, 0, "y")
    path = onnx_models.saved(graph.model({"x": [1, 4, 180, 180]}, "y"), tmp_path)
    done = npukit("build", path, "--pes", "1", "-o", "out", folder=tmp_path)
    check(done, 3, "bytes more than PE 0 of pe-mesh has", tmp_path)
    assert "Things to try:" in done.stderr


def test_strict_build_with_an_op_on_the_core(tmp_path: Path) -> None:
    check(npukit("build", MODEL, "--strict", "-o", "out", folder=tmp_path), 1, "softmax", tmp_path)


def test_not_a_build_folder(tmp_path: Path) -> None:
    check(npukit("validate", tmp_path, folder=tmp_path), 1, "is not a build folder", tmp_path)


def test_build_that_was_tampered_with(tmp_path: Path) -> None:
    built = shared_build(MODEL, tmp_path / "built", pes=1)
    plan = built.folder / "plan.json"
    plan.write_text(plan.read_text().replace("5", "6", 1))
    check(npukit("validate", "built", folder=tmp_path), 1, "plan.json is not what the build left there", tmp_path)


def test_board_that_does_not_run_there(tmp_path: Path) -> None:
    shared_build(MODEL, tmp_path / "built", pes=1)
    check(npukit("validate", "built", "--on", "qemu", folder=tmp_path), 1, "does not run on qemu", tmp_path)


def test_inputs_of_another_type(tmp_path: Path) -> None:
    import numpy as np

    shared_build(MODEL, tmp_path / "built", pes=1)
    np.savez(tmp_path / "floats.npz", in0=np.zeros((1, 1, 8, 8, 1), np.float32))
    done = npukit("validate", "built", "--inputs", "floats.npz", folder=tmp_path)
    check(done, 1, "in0 in floats.npz is float32, the model's input", tmp_path)


@pytest.mark.parametrize("verb", ["build", "fit", "validate", "run", "bench", "boards", "doctor"])
def test_every_verb_explains_itself(verb: str, tmp_path: Path) -> None:
    done = npukit(verb, "--help", folder=tmp_path)
    assert done.returncode == 0
    assert "Example: npukit" in done.stdout
