"""The MAC array in SystemVerilog: bytes and cycles of random commands equal the numpy model's."""

from __future__ import annotations

from pathlib import Path

import pytest

from npukit.board.board import load_board
from rtl.verilated import compile_array, differences, is_installed, lint

pytestmark = pytest.mark.skipif(not is_installed(), reason="Verilator is not installed: the RTL is not simulated")
CHAINS = 150


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_array(tmp_path_factory.mktemp("rtl"))


@pytest.mark.parametrize("seed", range(2))
def test_random_commands_leave_the_same_bytes_and_take_the_same_cycles(program: Path, seed: int) -> None:
    slot = load_board("pe-mesh").accelerator_named("mac_array")
    assert slot is not None
    assert not differences(program, slot.figures, seed, CHAINS)


def test_verilator_has_nothing_to_warn_of() -> None:
    assert lint() == ""
