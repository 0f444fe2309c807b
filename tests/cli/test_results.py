"""Results of verbs: as JSON, as text, as an exit status."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS
from npukit.cli.main import app
from npukit.cli.summary import _load, _remarks, _show_layers
from npukit.cli.terminal import Terminal
from npukit.measure.validate import CASES, DEPLOYED, Mismatch, Validation

EQUAL = Validation("emulator", 2, True, (), 18, 200)
UNEQUAL = Validation("emulator", 2, False, (Mismatch(1, "scores", 0, (0, 7), 12, 13),), 18)


@pytest.fixture(autouse=True)
def _any_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.api.load", lambda folder, modified: SimpleNamespace(modified=None))
    monkeypatch.setattr("npukit.api.load_networks", lambda folder, modified: {})


def validate(found: Validation, monkeypatch: pytest.MonkeyPatch, *arguments: str):
    monkeypatch.setattr("npukit.api.validate", lambda folder, **options: found)
    return CliRunner().invoke(app, ["validate", "out", *arguments])


def test_equal_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    done = validate(EQUAL, monkeypatch)
    assert done.exit_code == 0
    assert done.stdout == "equal bit for bit: 2 cases on emulator (18 layers in 200 tiles)\n"


def test_a_mismatch_exits_with_3_and_names_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    done = validate(UNEQUAL, monkeypatch)
    assert done.exit_code == 3
    assert done.stderr.startswith("error: case 1, PE 0, observed frame: scores[0, 7] is 12, the reference says 13\n")


def test_outputs_that_only_the_file_expects_are_not_laid_to_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Mismatch(1, "scores", 0, (0, 7), 12, 13, by=CASES)
    done = validate(Validation("emulator", 2, False, (wrong,), 18), monkeypatch)
    assert "scores[0, 7] is 12, the cases say 13" in done.stderr
    assert "--expect ARRAY" in done.stderr
    assert "accelerator" not in done.stderr


def test_a_mismatch_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    done = validate(UNEQUAL, monkeypatch, "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["mismatches"][0]["tensor"] == "scores"


def test_a_layer_of_which_only_the_digest_differs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Validation("emulator", 1, True, (Mismatch(0, "stem", 3, (), 1, 2, "[0:4]"),), 9)
    done = validate(layer, monkeypatch)
    assert done.exit_code == 3
    assert "PE 3, observed frame: the CRC-32 of stem[0:4]" in done.stderr


def test_two_paths_that_differ_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Mismatch(1, "scores", 0, (0, 7), 12, 13, path=DEPLOYED)
    done = validate(Validation("emulator", 2, False, (wrong,), 18, paths_equal=False), monkeypatch)
    assert done.exit_code == 3
    assert done.stderr.startswith(
        "error: the deployed and the observed path of this build differ:"
        " case 1, PE 0, deployed frame: scores[0, 7] is 12, the reference says 13\n"
    )


def test_options_reach_the_kit(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict = {}
    monkeypatch.setattr("npukit.api.validate", lambda folder, **options: asked.update(options) or EQUAL)
    CliRunner().invoke(
        app, ["validate", "out", "--on", "qemu", "--inputs", "x.npz", "--expect", "out0_tflm", "--cases", "1"]
    )
    del asked["progress"]
    assert asked == {
        "on": "qemu",
        "inputs": Path("x.npz"),
        "expect": "out0_tflm",
        "cases": 1,
        "faults": None,
        "waves": None,
        "stream": False,
        "schedule": None,
    }


@pytest.mark.exhaustive
def test_more_pes_than_the_board_has_are_told() -> None:
    done = CliRunner().invoke(app, ["fit", str(DIGITS / "digits_int8.tflite"), "--pes", "99"])
    assert "--pes 99: pe-mesh has 16 PEs" in done.stdout


def test_boards_name_their_core() -> None:
    done = CliRunner().invoke(app, ["boards", "pico", "--json"])
    assert [board["core"] for board in json.loads(done.stdout)] == ["cortex-m0plus"]


def test_constants_of_kernels_are_told_where_they_are_larger_than_the_models() -> None:
    lines = list[str]()
    for constants in (None, {"kernels": 110, "model": 100}, {"kernels": 2000, "model": 1000}):
        summary = {"pes_allowed": None, "pes_of_board": 1, "undivided": [], "kernel_constants": constants}
        lines += _remarks(summary)
    assert [line.partition(";")[0] for line in lines] == [
        "kernels chosen for speed have 2,000 bytes of constants for 1,000 in the model"
    ]


def test_inputs_that_no_line_of_1_gbit_carries_are_told() -> None:
    load = {"computing": 1, "busiest_link": None, "streamed_bytes": 0}
    told = {"load": load, "predicted": {"interval_cycles": 184}, "input_bytes": 3072, "clock_hz": 300_000_000}
    assert "inputs need 40.1 Gbit/s; a link of 1 Gbit/s carries one frame in 40" in _load(told)
    assert "Gbit" not in _load({**told, "predicted": {"interval_cycles": 184_000}})


def test_a_reason_for_plain_c_is_said_once_for_all_layers(capsys: pytest.CaptureFixture[str]) -> None:
    shared = {"op": "dense", "title": "", "macs": 4, "pes": [0], "predicted_cycles": 9, "engine": "cpu", "choice": ""}
    kernels = {"a": "dense16", "b": "plain C: no DSP", "c": "plain C: no DSP"}
    ops = [{"name": name, "kernel": kernel, "reason": "", **shared} for name, kernel in kernels.items()]
    frame = [{"name": name, "cycles": 9} for name in kernels]
    _show_layers(Terminal(), {"ops": ops, "pes_used": 1, "frame": frame})
    told = capsys.readouterr().out
    assert told.count("no DSP") == 1
    assert told.endswith("plain C for 2 layers: no DSP\n")
