"""The command suggested after a build, by the emulators and serial ports of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from npukit.board.board import load_board
from npukit.cli.next_step import next_step
from npukit.emulator.here import usual

OUT = Path("out")


@pytest.mark.parametrize(
    ("board", "here", "ports", "said"),
    [
        ("pe-mesh", [], [], "npukit validate out"),
        ("mps2-an386", ["qemu-system-arm"], [], "npukit validate out"),
        ("mps2-an386", [], [], "npukit validate out"),
        ("stm32f4-disco", ["renode"], ["COM3"], "npukit validate out"),
    ],
)
def test_it_follows_what_is_here(
    board: str, here: list[str], ports: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: name if name in here else None)
    monkeypatch.setattr("npukit.link.transports.plugged_in", lambda: ports)
    assert next_step(OUT, load_board(board)) == said


@pytest.mark.parametrize(
    ("here", "ports", "said"),
    [
        ([], ["COM3"], "npukit flash out, then npukit validate out --on serial"),
        (["qemu-system-arm"], [], "plug the board in, then npukit flash out"),
        (["renode"], ["COM3"], "npukit validate out"),
    ],
)
def test_without_any_emulator_of_a_board_it_is_flashed(
    here: list[str], ports: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("npukit.emulator.here.find_spec", lambda name: None)
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: name if name in here else None)
    monkeypatch.setattr("npukit.link.transports.plugged_in", lambda: ports)
    assert next_step(OUT, load_board("nrf52840-dk")) == said


def test_without_the_built_in_emulator_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.emulator.here.find_spec", lambda name: None)
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: name)
    assert next_step(OUT, load_board("pe-mesh")) == "npukit validate out"


def test_what_runs_a_build_is_the_first_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("mps2-an386")
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: name)
    assert usual(board) == "qemu"
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: None)
    assert usual(board) == "emulator"
    monkeypatch.setattr("npukit.emulator.here.find_spec", lambda name: None)
    assert usual(board) == "qemu", "which then says how to get it"


def test_without_any_emulator_the_doctor_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.emulator.here.find_spec", lambda name: None)
    monkeypatch.setattr("npukit.emulator.here.find_program", lambda name: None)
    said = "npukit doctor, which says how to get an emulator of this board"
    assert next_step(OUT, load_board("mps2-an386")) == said
