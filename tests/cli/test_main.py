"""The command line from a user's view."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import CHECKOUT
from npukit.board.board import known_boards
from npukit.cli.main import app, run

VERBS = ("build", "validate", "run", "bench", "boards", "doctor")


def npukit(*arguments: str):
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_helps_with_an_example_of_itself(verb: str) -> None:
    done = npukit(verb, "--help")
    assert done.exit_code == 0
    assert f"Example: npukit {verb}" in done.stdout
    assert "--json" in done.stdout


def test_a_usage_error_exits_with_2() -> None:
    assert npukit("boards", "--no-such-option").exit_code == 2
    assert npukit("no-such-verb").exit_code == 2


@pytest.mark.parametrize(
    "words", [("boards", "--no-such-option"), ("no-such-verb",), ("build",), ("fit", "x", "--pes=z")]
)
def test_wrong_usage_is_one_json_value_where_that_is_wanted(words: tuple[str, ...]) -> None:
    done = npukit(*words, "--json")
    told = json.loads(done.stdout)["error"]
    assert (done.exit_code, told["status"]) == (2, 2)
    assert told["message"] in " ".join(re.sub("[│\n ]+", " ", done.stderr).split())
    assert told["tries"] in (["npukit --help"], [f"npukit {words[0]} --help"])


def test_boards_as_json_are_the_board_files() -> None:
    done = npukit("boards", "--json")
    assert {b["name"]: b["pes"] for b in json.loads(done.stdout)} == {b.name: b.pe_count for b in known_boards()}


def test_boards_for_people_name_every_board() -> None:
    done = npukit("boards")
    assert all(board.name in done.stdout for board in known_boards())


def test_what_is_wrong_is_one_line_and_ways_out(tmp_path: Path) -> None:
    done = npukit("validate", str(tmp_path), "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)["error"]
    first, second, *ways = done.stderr.splitlines()
    assert first == f"error: {tmp_path} is not a build folder: it has no npukit.json"
    assert second == "Things to try:"
    assert ways == [f"  - {way}" for way in told["tries"]]
    assert (told["message"], told["status"]) == (first.removeprefix("error: "), 1)


def test_a_traceback_is_shown_only_with_vv(tmp_path: Path) -> None:
    assert "Traceback" not in npukit("validate", str(tmp_path), "-v").stderr
    assert "Traceback" in npukit("validate", str(tmp_path), "-vv").stderr


def test_a_fault_of_npukit_itself_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr("npukit.tools.find_tools", broken)
    done = npukit("doctor")
    assert done.exit_code == 1
    assert done.stderr.splitlines()[0] == "error: npukit itself failed: ZeroDivisionError: by nothing"


def test_doctor_tells_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    tools = {tool["name"]: tool for tool in json.loads(npukit("doctor", "--json").stdout)}
    assert not tools["qemu-system-arm"]["found"]
    assert tools["qemu-system-arm"]["how_to_get"]
    assert tools["numpy"]["found"]


def test_doctor_fails_where_nothing_can_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler is found but does not work."""
    (tmp_path / "arm-none-eabi-gcc").write_text("#!/bin/sh\n[ $1 = -dumpfullversion ] && echo 1.0 || exit 1\n")
    (tmp_path / "arm-none-eabi-gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    done = npukit("doctor")
    assert done.exit_code == 1
    assert "error: npukit cannot work without cross compiler" in done.stderr


def loaded_by(script: str) -> list[str]:
    """Words of the script's last line of output: the names of the modules loaded."""
    show = "import atexit, sys; atexit.register(lambda: print(*sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", f"{show}; {script}"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(CHECKOUT / "kit")},
    )
    return done.stdout.splitlines()[-1].split()


def test_help_is_quick_to_come_because_it_loads_no_compiler() -> None:
    loaded = loaded_by("from npukit.cli.main import app; app(['--help'])")
    assert "typer" in loaded
    assert not set(loaded) & {"tvm", "numpy", "onnx", "onnxruntime", "pydantic", "unicorn"}


def test_what_reads_a_build_loads_nothing_that_makes_one() -> None:
    loaded = loaded_by("import npukit.api")
    assert "npukit.project.build_folder" in loaded
    assert not set(loaded) & {"tvm", "capstone", "npukit.project.compile", "npukit.pipeline"}


def test_the_command_is_not_held_up_by_searches_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds: list[int] = []
    monkeypatch.setattr(gc, "set_threshold", thresholds.append)
    monkeypatch.setattr(sys, "argv", ["npukit", "boards"])
    with pytest.raises(SystemExit):
        run()
    assert thresholds == [100_000]
