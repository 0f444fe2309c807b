"""`npukit build` on the example, from the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.cli.main import app

MODEL = CHECKOUT / "examples" / "digits" / "digits_int8.tflite"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's working folder, with the model inside."""
    shutil.copy(MODEL, tmp_path / "digits.tflite")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def build(*arguments: str):
    return CliRunner().invoke(app, ["build", "digits.tflite", *arguments])


@pytest.mark.exhaustive
def test_json_names_every_layer_and_its_engine(folder: Path) -> None:
    done = build("-o", "out/digits", "--pes", "1", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    kinds = [kind for op in told["ops"] for kind in op["op"].split(" + ")]
    wanted = "conv2d", "depthwise_conv2d", "conv2d", "add", "conv2d", "average_pool", "reshape", "dense", "softmax"
    assert kinds == [*wanted]
    assert [op["op"] for op in told["ops"] if op["engine"] != "mac_array"] == ["reshape", "softmax"]
    assert all(op["reason"] for op in told["ops"] if op["engine"] == "cpu")
    assert told["fits"]
    assert json.loads((folder / "out/digits/npukit.json").read_text())["summary"] == told


@pytest.mark.exhaustive
def test_without_the_accelerator_every_layer_runs_on_the_core() -> None:
    told = json.loads(build("-o", "out", "--engine", "cpu", "--pes", "1", "--json").stdout)
    assert {op["engine"] for op in told["ops"]} == {"cpu"}


def test_strict_refuses_what_the_accelerator_does_not_run(folder: Path) -> None:
    done = build("-o", "out", "--strict")
    assert done.exit_code == 1
    assert "softmax" in done.stderr
    assert not (folder / "out").exists()


def test_a_board_nobody_knows_is_an_error_of_one_line() -> None:
    done = build("-o", "out", "--board", "no-such-board")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == "error: board no-such-board is not known"


@pytest.mark.exhaustive
def test_a_folder_of_something_else_is_left_alone(folder: Path) -> None:
    (folder / "precious.txt").write_text("mine")
    done = build("-o", ".")
    assert done.exit_code == 1
    assert (folder / "precious.txt").read_text() == "mine"


def test_a_model_that_is_not_there_is_an_error_of_one_line() -> None:
    done = CliRunner().invoke(app, ["build", "nothing.tflite", "-o", "out"])
    assert done.exit_code == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert "nothing.tflite" in line
    assert "npukit itself failed" not in done.stderr


@pytest.mark.exhaustive
def test_code_that_is_not_divided_is_counted() -> None:
    model = str(CHECKOUT / "examples/digits/digits_float.onnx")
    several, alone = (CliRunner().invoke(app, ["fit", model, "--float", "--pes", pes]) for pes in ("4", "1"))
    said = "1 of 8 layers run on one PE each, because their C is no loop over rows"
    assert said in several.stdout.replace("\n", " ")
    assert "no loop over rows" not in alone.stdout


@pytest.mark.exhaustive
def test_a_build_without_renode_files_says_why(folder: Path) -> None:
    done = build("-o", "out", "--board", "pe-mesh-152", "--pes", "33", "--objective", "throughput")
    assert done.exit_code == 0, done.stderr
    why = "33 PEs do not fit in a Renode machine: its translation library knows at most 32 cores"
    assert f"no project/renode: {why}" in " ".join(done.stdout.split())
    assert not (folder / "out/project/renode").exists()
    assert json.loads((folder / "out/npukit.json").read_text())["summary"]["no_renode"] == why


@pytest.mark.exhaustive
def test_flash_and_ram_are_told_apart_with_the_time_of_a_frame() -> None:
    done = CliRunner().invoke(app, ["fit", "digits.tflite", "--board", "mps2-an386"])
    for row in (r"a frame +25 MHz", r"latency +[\d.]+ ms", r"SSRAM1 +\d+ / 4096 KB", r"SSRAM2 +\d+ / 4096 KB"):
        assert re.search(f"^{row}$", done.stdout, re.M), row
    told = json.loads(build("-o", "out", "--board", "mps2-an386", "--json").stdout)
    (memory,) = told["memory"]
    flash, ram = told["regions"]
    assert flash["used"] == memory["code"] - memory["variables"] + memory["constants"]
    assert ram["size"] - ram["used"] == memory["free"]
    assert 0 < memory["variables"] < memory["code"]
