"""`--on rtl`: the network in SystemVerilog on the built-in emulator, beside the emulator's network."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.board.board import Board, Grid, load_board
from npukit.data import data_folder
from npukit.emulator import rtl
from npukit.errors import NpukitError
from npukit.measure import target
from npukit.project.build_folder import Build
from rtl.verilated import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="Verilator is not installed: the RTL is not compiled")

MODEL = CHECKOUT / "examples" / "digits" / "digits_int8.tflite"
TWO_CHIPS = """like = "pe-mesh"
name = "two-chips"
summary = "two small chips"
runs_on = ["emulator"]
[mesh]
chips = { columns = 2, rows = 1 }
pes = { columns = 2, rows = 2 }
"""
MUTANTS = [
    ("network/noc_route.sv", "last_column ? 6'b000001 : 6'b000100", "last_column ? 6'b000001 : 6'b001000", ".*"),
    ("dma/dma_sender.sv", "flit_bytes > 5'(i)", "flit_bytes > 5'(i + 1)", "address 0x.* holds 0x.. by the RTL"),
    ("dma/dma_flags.sv", "(twice ? 2 : 1)", "(twice ? 1 : 2)", "register 0x.* of the DMA reads as"),
    ("dma/dma_receiver.sv", "count_index = now.flag[5:0]", "count_index = now.flag[5:0] ^ 6'd1", "flag .* alone"),
    ("dma/dma_fetch.sv", "finish = step == 5", "finish = step == 4", ".*"),
    ("dma/pe_dma.sv", "port_access = fetch_read ||", "port_access =", "error 3 of PE 0 shows in the RTL alone"),
]
"""File, text and its replacement, words of the difference."""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("network") / "digits"
    return api.build(MODEL, board="pe-mesh", output=folder, options=api.Options(pes=4))


def test_digits_on_four_pes_is_exact_and_takes_the_manuals_cycles(digits: Build) -> None:
    found = api.validate(digits, on="rtl", cases=1)
    assert found.passed
    assert found.rtl_parts == ("mac_array", "network")
    assert (found.rtl_messages or 0) >= len(digits.plan().messages)
    measured = api.bench(digits, on="rtl", frames=1)
    assert measured.manual is not None
    told = replace(measured, engine="emulator", timeline=None, manual=None, rtl_parts=())
    assert told == replace(measured.manual, timeline=None)


@pytest.mark.exhaustive
def test_digits_on_two_chips_is_exact(tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(TWO_CHIPS)
    options = api.Options(pes=8, objective="throughput")
    built = api.build(MODEL, board=str(tmp_path / "board.toml"), output=tmp_path / "build", options=options)
    found = api.validate(built, on="rtl", cases=1)
    assert found.passed
    assert found.rtl_messages


@pytest.mark.exhaustive
@pytest.mark.parametrize(("file", "old", "new", "told"), MUTANTS)
def test_a_defect_of_the_network_is_named(
    digits: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str, told: str
) -> None:
    shutil.copytree(data_folder("rtl"), tmp_path / "rtl")
    changed = tmp_path / "rtl" / file
    assert changed.read_text().count(old) == 1
    changed.write_text(changed.read_text().replace(old, new))
    network = rtl.network_of(digits.board)
    assert network is not None
    folders = [tmp_path / "rtl" / folder.name for folder in (network.folder, *network.more)]
    library = rtl.library_of(replace(network, folder=folders[0], more=tuple(folders[1:])))
    monkeypatch.setattr(target, "rtl_libraries", lambda *_, **__: {rtl.NETWORK: library})
    with pytest.raises(NpukitError, match=f"the RTL of network differs from its model .*{told}"):
        api.bench(digits, on="rtl", frames=1)


def _with_figure(board: Board, **figures: int) -> Board:
    assert board.noc
    return board.model_copy(update={"noc": board.noc.model_copy(update=figures)})


def test_other_networks_are_not_in_rtl() -> None:
    board = load_board("pe-mesh")
    one, many = rtl.network_of(board), rtl.network_of(load_board("pe-mesh-7296"))
    assert one is not None
    assert many is not None
    assert one.parameters["INPUT_PLACES"] == 2
    assert many.parameters["INPUT_PLACES"] == 4
    torus = board.mesh.model_copy(update={"chips": Grid(columns=2, rows=2), "chip_links": "hexagonal torus"})
    assert rtl.network_of(board.model_copy(update={"mesh": torus})) is None
    assert rtl.network_of(_with_figure(board, hop_cycles=3)) is None
    assert rtl.network_of(_with_figure(board, dram_row_cycles=20)) is None
    assert rtl.network_of(board.model_copy(update={"noc": None})) is None
