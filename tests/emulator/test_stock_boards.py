"""Single-core boards of the built-in emulator: restart, and reports of faults."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, models
from npukit import api
from npukit.board.board import known_boards, load_board
from npukit.cli.main import app
from npukit.emulator.builtin import Emulator
from npukit.emulator.debugged import DebuggedEmulator, Debugger
from npukit.emulator.faults import CoreFault
from npukit.errors import DoesNotFit, NpukitError
from npukit.link.session import Session
from npukit.project.images.image import Image
from project.identity import BUILD_ID
from project.test_on_qemu import built_with

BOARDS = {board.core.type.title: board.name for board in reversed([*known_boards()]) if board.qemu and board.emulator}
QUICK = ("pico",)
OWNED = [board.name for board in known_boards() if board.emulator and "serial" in board.runs_on]
OWNED.sort(key=lambda name: name not in QUICK)
"""Boards on the market that the built-in emulator has. The boards in `QUICK`, which make test tries, come first."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("core", first_of(list(BOARDS), 3))
def test_a_network_is_exact_and_as_fast_as_predicted_on_each_core(core: str, tmp_path: Path) -> None:
    """For the other cores, make test has the results of QEMU: `end_to_end/test_cores.py`."""
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", BOARDS[core], toolchain="zig")
    assert api.validate(built.folder, on="emulator", cases=1).passed
    found = api.bench(built.folder, on="emulator", frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=0.2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", ["mps2-an386", "riscv-virt"])
def test_a_board_starts_again_and_computes(board: str, tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", board, toolchain="zig")
    with Emulator(built.board, built.images()) as emulator, Session(emulator, built.build_id) as session:
        before = session.run()
        session.reset()
        assert session.run().cycles == pytest.approx(before.cycles, abs=50)


def test_a_core_that_gdb_is_not_shown_is_refused() -> None:
    with pytest.raises(NpukitError, match="shows gdb no RV32IMC"):
        DebuggedEmulator(load_board("riscv-virt"), [], {}, b"", Debugger(0, 3333))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("board", "register"), [("mps2-an505", "r0="), ("riscv-virt", "a0=")])
def test_a_load_from_nowhere_names_instruction_and_registers(board: str, register: str, tmp_path: Path) -> None:
    loop = "for (uint32_t i = 0; i < BYTES; i++"
    read = (loop, f"*(volatile uint32_t *)0xD0000000;\n    {loop}")
    built = built_with(tmp_path, "zig", read, board=board)
    image = Image(built.images[0].elf, (0,))
    running = Emulator(load_board(board), [image])
    with running, Session(running, bytes.fromhex(BUILD_ID)) as session, pytest.raises(CoreFault) as caught:
        session.run()
    assert "net_run" in caught.value.message
    assert "a load from address 0xd0000000" in caught.value.message
    assert any(register in fact for fact in caught.value.facts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("board", first_of(OWNED, len(QUICK)))
def test_a_board_that_people_own_is_exact_and_as_fast_as_predicted(board: str, tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", board, toolchain="zig")
    assert api.validate(built.folder, on="emulator", cases=1).passed
    found = api.bench(built.folder, on="emulator", frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=0.2)
    assert found.clock_hz == built.board.core.clock_hz


@pytest.mark.exhaustive
def test_a_board_that_counts_no_instructions_and_no_sleep_says_null(tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", QUICK[0], toolchain="zig")
    found = api.bench(built.folder, on="emulator", frames=1).to_json()
    assert {found["instructions"], *(each["instructions"] for each in (*found["layers"], *found["pes"]))} == {None}
    looked = CliRunner().invoke(app, ["monitor", str(built.folder), "--on", "emulator", "--times", "1", "--json"])
    assert [(each["instructions"], each["asleep"]) for each in json.loads(looked.stdout)["looks"]] == [(None, None)]
    said = CliRunner().invoke(app, ["monitor", str(built.folder), "--on", "emulator", "--times", "1"])
    assert "instructions not counted, sleep not counted" in said.stdout


ONE_OF_EACH = {
    board.core.type.title: board.name for board in map(load_board, reversed(OWNED)) if board.name != "microbit"
}
"""A board on the market for each kind of core, with more than the 16 KB of the micro:bit."""
NETWORKS = [*product(ONE_OF_EACH.values(), ["kws_ref_model", "ad01_int8", "pretrainedResnet_quant"])]
NETWORKS += product(["nrf52840-dk", "pico2-rv"], ["vww_96_int8"])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("board", "name"), NETWORKS)
def test_networks_of_mlperf_tiny_are_exact_where_they_fit(board: str, name: str, tmp_path: Path) -> None:
    """Each kind of core; the largest network, visual wake words, on one Arm board and one RISC-V board."""
    try:
        built = shared_build(models() / f"{name}.tflite", tmp_path / "build", board, toolchain="zig")
    except DoesNotFit as error:
        pytest.skip(error.message)
    assert api.validate(built.folder, on="emulator", cases=1).passed
