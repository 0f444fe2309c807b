"""Every core that npukit supports, end to end: the same network, exact, compiled for the core's instruction set."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, models, need
from npukit import api
from npukit.board.board import Board, known_boards, load_board

MODEL = DIGITS / "digits_int8.tflite"
QEMU_BOARDS = {board.core.type.title: board.name for board in reversed([*known_boards()]) if "qemu" in board.runs_on}
QUICK = ("Cortex-M0", "Cortex-M33 without DSP", "Cortex-M55", "Cortex-M7", "RV32IMC with vectors")
"""Cores that `make test` tries: the smallest, a core for each set of kernels, and the cores without another test."""
MESH = """like = "pe-mesh"
name = "m3-mesh"
summary = "a mesh of cores without FPU and DSP instructions"

[core]
cpu = "cortex-m3"
clock_hz = 300_000_000
"""


@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
@pytest.mark.parametrize("core", first_of(sorted(QEMU_BOARDS, key=lambda core: core not in QUICK), len(QUICK)))
def test_a_stock_board_of_each_core_on_qemu(core: str, compiler: str, tmp_path: Path) -> None:
    board = load_board(QEMU_BOARDS[core])
    _skip_without(board, compiler)
    built = shared_build(MODEL, tmp_path / "build", board.name, toolchain=compiler)
    assert api.validate(built.folder, on="qemu").passed
    kernel = built.manifest.summary["ops"][0]["kernel"]
    assert (f"DSP instructions, which the {core} lacks" in kernel) == (not board.core.type.has_dsp)


@pytest.mark.exhaustive
@pytest.mark.parametrize("on", ["qemu", "emulator"])
def test_two_cores_of_a_chip_compute_frames_of_their_own(on: str, tmp_path: Path) -> None:
    board = load_board("mps2-an521")
    if on == "qemu":
        _skip_without(board, "zig")
    built = shared_build(MODEL, tmp_path / "build", board.name, toolchain="zig", objective="throughput")
    assert [image.pes for image in built.images()] == [(0,), (1,)]
    assert api.validate(built.folder, on=on, cases=2).passed
    found = api.bench(built.folder, on="emulator", frames=2).interval_cycles
    assert found == pytest.approx(built.plan().predicted.interval_cycles, rel=0.1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["kws_ref_model", "ad01_int8"])
@pytest.mark.parametrize("core", [core for core in QEMU_BOARDS if core != "Cortex-M0"])
def test_networks_of_mlperf_tiny_on_each_core(core: str, name: str, tmp_path: Path) -> None:
    """All cores except the Cortex-M0, whose board has 16 KB."""
    board = load_board(QEMU_BOARDS[core])
    _skip_without(board, "zig")
    built = shared_build(models() / f"{name}.tflite", tmp_path / "build", board.name, toolchain="zig")
    assert api.validate(built.folder, on="qemu").passed


def _skip_without(board: Board, compiler: str) -> None:
    architecture = board.core.type.architecture
    need(architecture.qemu, *([architecture.gcc] if compiler == "gcc" else []))


@pytest.mark.exhaustive
def test_a_mesh_of_cores_without_fpu(tmp_path: Path) -> None:
    shutil.copy(DIGITS.parents[1] / "boards/pe-mesh.toml", tmp_path)
    (tmp_path / "m3.toml").write_text(MESH)
    built = shared_build(MODEL, tmp_path / "build", str(tmp_path / "m3.toml"), toolchain="zig", pes=4)
    assert len(built.manifest.summary["memory"]) == 4
    assert api.validate(built.folder).passed
