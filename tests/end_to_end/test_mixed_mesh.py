"""A mesh of different PEs, from the model to compared frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.mesh.kinds_of_pe import BOTH, HALF, M0PLUS, SMALL

from emulator.programs import program
from end_to_end.builds import DIGITS, build
from helpers import models
from npukit import api
from npukit.board.board import Board, load_board
from npukit.emulator.builtin import Emulator
from npukit.emulator.faults import CoreFault
from npukit.errors import NpukitError
from npukit.project.build_folder import load_build
from npukit.project.images.elf_file import check_elf
from npukit.project.images.image import Image

PREDICTED = 0.05


@pytest.fixture
def board(tmp_path: Path) -> str:
    (tmp_path / "half.toml").write_text(HALF)
    return str(tmp_path / "half.toml")


def is_exact_and_as_predicted(model: Path, folder: Path, board: str) -> None:
    built = build(model, folder, board, toolchain="zig", pes=16)
    assert api.validate(built.folder).passed
    found = api.bench(built.folder, frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=PREDICTED)


OTHER = 'cpu = "rv32imafc"\n\n[events]\nbase = 0xE600_0000\n'


@pytest.mark.exhaustive
def test_a_network_on_half_of_the_pes_with_array_and_another_core(tmp_path: Path) -> None:
    (tmp_path / "half.toml").write_text(HALF + OTHER)
    is_exact_and_as_predicted(DIGITS / "digits_int8.tflite", tmp_path / "build", str(tmp_path / "half.toml"))
    build = load_build(tmp_path / "build")
    root = next(image for image in build.images() if 0 in image.pes)
    (fault,) = {_fault_of(root.elf, build.board, pe) for pe in (1, 3)}
    assert fault.startswith(f"image {root.elf} cannot be read: it is not for a Cortex-M4F")


def _fault_of(elf: Path, board: Board, pe: int) -> str:
    with pytest.raises(NpukitError) as refused:
        check_elf(elf, board, (pe,))
    return str(refused.value)


CHIPLETS = """like = "pe-mesh"
name = "chiplets"
summary = "a chip of Cortex-M0+ without array, and one of Cortex-M4F with it"
runs_on = ["emulator"]

[mesh]
chips = { columns = 2, rows = 1 }
pes = { columns = 2, rows = 2 }

[[kind]]
pes = [[0, 3]]
accelerators = []
cpu = "cortex-m0plus"
"""


@pytest.mark.exhaustive
def test_chips_of_different_kinds_compute_one_frame(tmp_path: Path) -> None:
    """The root's chip talks to the host; the other chip has the arrays."""
    (tmp_path / "chiplets.toml").write_text(CHIPLETS)
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "build", str(tmp_path / "chiplets.toml"), chips=2)
    assert {pe.pe for pe in built.plan().pes} == {0, 4, 5, 6, 7}
    assert api.validate(built.folder).passed
    found = api.bench(built.folder, frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=PREDICTED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", [HALF, M0PLUS, BOTH])
@pytest.mark.parametrize("name", ["kws_ref_model", "ad01_int8", "vww_96_int8", "pretrainedResnet_quant"])
def test_the_networks_of_mlperf_tiny_on_pes_that_are_not_alike(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "mixed.toml").write_text(text)
    is_exact_and_as_predicted(models() / f"{name}.tflite", tmp_path / "build", str(tmp_path / "mixed.toml"))


@pytest.mark.parametrize(("pe", "faults"), [(0, True), (1, False)])
def test_the_emulator_has_no_array_where_the_board_has_none(pe: int, faults: bool, board: str) -> None:
    body = f"if (DMA_PE == {pe}) {{ RESULTS[0] = ARRAY_STATUS; }} return 0;"
    image = Image(program(f'#include "board.h"\nint main(void) {{ {body} }}'), (0, 1))
    with Emulator(load_board(board), [image]) as emulator:
        if not faults:
            assert emulator.read(20) == b""
            return
        with pytest.raises(CoreFault, match=r"PE 0 stopped .* a load from address 0xe3000004, where nothing is"):
            emulator.read(20)


@pytest.fixture
def small(tmp_path: Path) -> str:
    (tmp_path / "small.toml").write_text(SMALL)
    return str(tmp_path / "small.toml")


@pytest.mark.exhaustive
def test_frames_on_pes_with_more_and_with_less_memory(small: str, tmp_path: Path) -> None:
    """Each PE's activations end with its own memory, and senders address other PEs accordingly."""
    built = build(DIGITS / "digits_int8.tflite", tmp_path / "build", small, objective="throughput", toolchain="zig")
    used = {pe.pe for pe in built.plan().pes}
    assert {0, 1, 2, 3} <= used
    assert api.validate(built.folder).passed
    assert all(len({built.board.seen_by(pe).memory[0].end for pe in image.pes}) == 1 for image in built.images())


def test_the_emulator_has_no_memory_where_a_kind_has_none(small: str) -> None:
    """The program's variables reach to the end of the larger memory."""
    elf = program("int main(void) { return 0; }")
    with Emulator(load_board(small), [Image(elf, (0,))]) as emulator:
        assert emulator.read(20) == b""
    with pytest.raises(NpukitError, match=r"PE 1 of board small has no \d+ bytes of memory"):
        Emulator(load_board(small), [Image(elf, (1,))])
