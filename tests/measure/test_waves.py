"""Waveforms of a tile: `npukit validate --on rtl --waves`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers import needs
from npukit.cli.main import app
from npukit.cli.terminal import Terminal
from npukit.cli.verbs.validate import _show as show
from npukit.errors import NpukitError
from npukit.measure.validate import Mismatch, Validation
from npukit.measure.waves import WavesOf
from npukit.skeleton import new_accelerator

NAME = "tiny_rtl"
DENSE = 4 + 10 * (2 * 512 // 16 + 4)
"""Cycles of the small network's dense layer."""


def npukit(*words: str):
    return CliRunner().invoke(app, words)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    new_accelerator(NAME, tmp_path, rtl=True)
    done = npukit("build", "small.tflite", "--board", f"{NAME}.toml", "--pes", "1", "-o", "out", "--engine", NAME)
    assert done.exit_code == 0, done.stderr
    return tmp_path / "out"


def validate(*words: str):
    return npukit("validate", "out", "--board", f"{NAME}.toml", "--on", "rtl", "--cases", "2", *words)


def half_cycles(file: Path) -> list[int]:
    """The times of a waveform in half cycles."""
    text = file.read_text()
    assert "$timescale 100ps $end" in text
    return [int(time) // 5 for time in re.findall(r"^#(\d+)$", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3:conv2d_0", WavesOf(3, "conv2d_0")),
        ("3:conv2d_0@2", WavesOf(3, "conv2d_0", 2)),
        ("0:100-200", WavesOf(0, cycles=(100, 200))),
        ("0:a:b-1", WavesOf(0, "a:b-1")),
    ],
)
def test_tiles_are_read_and_written(text: str, wanted: WavesOf) -> None:
    assert WavesOf.parse(text) == wanted
    assert str(wanted) == text


@needs("verilator")
def test_the_waveform_of_a_layer_has_its_cycles_alone(built: Path) -> None:
    done = validate("--waves", "0:dense_0@1")
    assert done.exit_code == 0, done.stderr
    assert "equal bit for bit" in done.stdout
    (file,) = (built / "waves").iterdir()
    assert f"waveform: out/waves/{file.name}" in done.stdout
    assert file.name == f"pe0-dense_0@1-{NAME}.vcd"
    times = half_cycles(file)
    assert len(times) == 2 * DENSE
    assert times == list(range(times[0], times[0] + 2 * DENSE))


def test_a_tile_that_is_wrong_in_rtl_names_the_command_for_its_waveform() -> None:
    """RTL and model may agree, and both be wrong."""
    wrong = Mismatch(1, "scores", 2, (), 7, 8, "[0:1, 0:10]")
    found = Validation("rtl", 2, outputs_equal=False, mismatches=(wrong,), layers_checked=4)
    with pytest.raises(NpukitError) as caught:
        show(Terminal(), found, again="npukit validate out --on rtl")
    assert "npukit validate out --on rtl --waves 2:scores@1" in caught.value.tries


@needs("verilator")
@pytest.mark.exhaustive
def test_a_difference_names_the_command_for_its_waveform(built: Path) -> None:
    source = built.parent / NAME / "rtl" / f"{NAME}.sv"
    source.write_text(source.read_text().replace("enable ? Layer : Begin", "Begin"))
    done = validate()
    assert done.exit_code == 1
    found = re.search(r"in the work begun in cycle (\d+): the RTL ends in cycle (\d+) after", done.stderr)
    again = re.search(r"- (npukit validate out .*) --waves 0:(\d+)-(\d+)$", done.stderr, re.MULTILINE)
    assert found, done.stderr
    assert again, done.stderr
    assert again[2] == found[1]
    assert again[3] == found[2]
    assert again[1] == f"npukit validate out --board {NAME}.toml --on rtl --cases 2"
    repeated = npukit(*shlex.split(again[0].removeprefix("- npukit ")))
    assert repeated.exit_code == 1
    (file,) = (built / "waves").iterdir()
    assert f"waveform: out/waves/{file.name}" in repeated.stderr
    assert half_cycles(file)[0] // 2 == int(found[1])
    assert half_cycles(file)[-1] // 2 == int(found[2])


@pytest.mark.parametrize(
    ("tile", "on", "told"),
    [
        ("conv2d_0", "rtl", "--waves conv2d_0 names no tile"),
        ("0:max_pool_0", "rtl", "no accelerator of PE 0 works for max_pool_0"),
        ("1:conv2d_0", "rtl", "no accelerator of PE 1 works for conv2d_0"),
        ("99:conv2d_0", "rtl", "has no PE 99"),
        ("0:conv2d_0@9", "rtl", "there are 2 cases"),
        ("0:conv2d_9", "rtl", "no layer of small is called conv2d_9"),
        ("0:conv2d_0", "emulator", "--waves is for accelerators in RTL, not for emulator"),
    ],
)
def test_tiles_without_waveform_are_refused(built: Path, tile: str, on: str, told: str) -> None:
    done = npukit("validate", "out", "--board", f"{NAME}.toml", "--cases", "2", "--on", on, "--waves", tile)
    assert done.exit_code == 1
    assert told in done.stderr
    assert not (built / "waves").exists()
