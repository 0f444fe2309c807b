"""A network on the stock boards of every installed emulator: the same bytes, and nearly as many instructions."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, need
from npukit import api
from npukit.emulator.renode.machine import find_renode
from npukit.errors import NpukitError

MODEL = DIGITS / "digits_int8.tflite"
BOARDS = {"netduinoplus2": "qemu", "stm32f4-disco": "renode", "nrf52840-dk": "renode"}
MOST_DIFFERENCE = 0.005
"""Largest relative difference between instruction counts. Boards differ in how the firmware sleeps and counts, and in
where a compiler puts constants."""


@pytest.fixture(scope="module")
def on_the_core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network on one PE of the mesh, entirely on the core."""
    folder = tmp_path_factory.mktemp("core") / "build"
    shared_build(MODEL, folder, engine="cpu", pes=1)
    return folder


def need_emulator(emulator: str) -> None:
    if emulator == "qemu":
        need("qemu-system-arm")
    if emulator == "renode":
        try:
            find_renode()
        except NpukitError as error:
            pytest.skip(f"{error.message}: nothing runs on the real Renode")


@pytest.mark.parametrize("board", first_of(list(BOARDS), 2))
def test_the_same_layers_and_outputs_and_as_many_instructions(board: str, on_the_core: Path, tmp_path: Path) -> None:
    need_emulator(BOARDS[board])
    shared_build(MODEL, tmp_path / "build", board)
    assert api.validate(tmp_path / "build", on=BOARDS[board]).passed
    ours, theirs = api.bench(on_the_core, on="emulator"), api.bench(tmp_path / "build", on=BOARDS[board])
    counted = theirs.instructions or theirs.latency_cycles  # a stock board in Renode takes one cycle per instruction
    assert counted == pytest.approx(ours.instructions, rel=MOST_DIFFERENCE)
