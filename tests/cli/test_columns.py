"""Every verb fits 80 columns: its help, and its output for a small build."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from npukit.cli.main import app
from npukit.cli.reference import commands

MODEL, INPUTS = str(DIGITS / "digits_int8.tflite"), str(DIGITS / "digits.npz")
PATHS = [path for path, _ in commands(typer.main.get_command(app), "npukit")]
VERBS = {
    "fit": [MODEL, "--pes", "1"],
    "validate": ["out", "--cases", "1", "--schedule", "1"],
    "run": ["out", "--inputs", INPUTS, "-o", "answers.npz"],
    "bench": ["out", "--frames", "1"],
    "trace": ["out", "-o", "trace.json"],
    "report": ["out"],
    "export": ["out", "--portable", "-o", "library"],
    "flash": ["out", "--port", "emulator", "--provision", "--dry-run"],
    "monitor": ["out", "--times", "1"],
    "boards": [],
    "ops": [],
    "doctor": [],
    "new": ["key", "-o", "key.pem"],
}
"""Verbs that end, each with words for a small build in `out`."""

MADE = {"run": "answers.npz", "trace": "trace.json", "report": "out/report.html", "export": "library", "new": "key.pem"}
"""Results of verbs that make something."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("columns")
    shared_build(Path(MODEL), folder / "out", pes=4)
    return folder


def output(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def widest(text: str) -> int:
    return max(len(line.rstrip()) for line in text.splitlines())


@pytest.mark.parametrize("path", PATHS)
def test_help_fits_80_columns_and_ends_with_an_example(path: str) -> None:
    told = output(*path.split()[1:], "--help")
    assert widest(told) <= 80
    assert "<" not in told, "no types"
    assert path == "npukit" or told.splitlines()[-1].startswith(f"Example: {path}")


@pytest.mark.parametrize("verb", VERBS)
def test_output_fits_80_columns(verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert widest(output(verb, *VERBS[verb])) <= 80


def test_a_build_names_its_folder_then_fits_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = output("build", MODEL, "--pes", "4", "--no-check", "-o", "out")
    assert widest(told) <= 80
    built, fits, *lines = told.splitlines()
    assert built.startswith("built: out; not checked")
    assert fits == "fits: digits_int8 on pe-mesh, 4 of 16 PEs"
    assert "next: npukit validate out" in lines


def test_the_layers_of_a_bench_add_up_to_its_latency(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    verdict, *lines = output("bench", "out", "--frames", "1").splitlines()
    table = [line[24:].split() for line in lines[lines.index("") + 2 :]]
    rows = table[: table.index([])]
    cells = [[cell for cell in row if cell[0].isdigit()] for row in rows]
    assert f"{sum(int(row[0].replace(',', '')) for row in cells):,} cycles on" in verdict
    assert round(sum(float(row[1]) for row in cells), 6) == 100


@pytest.mark.parametrize("verb", MADE)
def test_q_prints_the_path_of_the_result(verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "key.pem").unlink(missing_ok=True)
    more = ["--force"] if verb == "export" else []
    assert output(verb, *VERBS[verb], *more, "-q") == f"{MADE[verb]}\n"


@pytest.mark.parametrize("verb", ["fit", "validate", "bench", "boards"])
def test_q_prints_nothing_of_figures(verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert output(verb, *VERBS[verb], "-q") == ""
