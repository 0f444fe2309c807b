"""Activations in two memories: the fast memory as far as there is room, the rest in QEMU's PSRAM with wait states."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit import api
from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.library.sources import planned_for_library

MODEL = DIGITS / "digits_int8.tflite"
BOARD = """like = "mps2-an386"
name = "two-banks"

[[memory]]
name = "SSRAM1"
origin = 0x0000_0000
size = 0x40_0000
holds = ["code", "constants"]

[[memory]]
name = "PSRAM"
origin = 0x2100_0000
size = {psram}
holds = ["activations"]
waits = {{ cycles = 4, line_bytes = 4 }}

[[memory]]
name = "SSRAM2"
origin = 0x2000_0000
size = 0x3400
holds = ["activations", "stack"]
"""


@pytest.mark.exhaustive
def test_a_network_over_two_banks_is_exact_and_as_fast_as_predicted(tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD.format(psram=0x1000))
    assert [bank.name for bank in load_board(str(board)).banks] == ["SSRAM2", "PSRAM"]
    built = shared_build(MODEL, tmp_path / "build", str(board), toolchain="zig")
    (pe,) = built.plan().pes
    assert sum(pe.memory.banks) > 500
    assert api.validate(built.folder, on="emulator", cases=1).passed
    found = api.bench(built.folder, on="emulator", frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=0.1)
    with pytest.raises(NpukitError, match="several memories"):
        planned_for_library(built, portable=False)
    if shutil.which("qemu-system-arm"):
        assert api.validate(built.folder, on="qemu").passed


def test_a_refusal_names_the_sum_of_the_banks(tmp_path: Path) -> None:
    board = tmp_path / "board.toml"
    board.write_text(BOARD.format(psram=0x100))
    with pytest.raises(DoesNotFit, match=r"in its PSRAM of 256: .* in SSRAM2 and PSRAM are [\d,]+ bytes of 13,568"):
        api.fit(MODEL, board=str(board))
