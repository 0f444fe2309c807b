"""The network and DMA in SystemVerilog: bytes and cycles of random loads equal the built-in emulator's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rtl.mesh import TOPS, compile_mesh, lint
from rtl.network_loads import COLUMNS, ROWS, Load, Mesh, differences
from rtl.verilated import is_installed

pytestmark = pytest.mark.skipif(not is_installed(), reason="Verilator is not installed: the RTL is not simulated")
LOADS = 8


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    mesh = Mesh(compile_mesh(tmp_path_factory.mktemp("mesh"), COLUMNS, ROWS))
    yield mesh
    mesh.close()


@pytest.mark.exhaustive
def test_random_loads_leave_the_same_bytes_in_the_same_cycles(mesh: Mesh) -> None:
    for seed in range(LOADS):
        assert not differences(mesh, Load(seed)), seed
    assert not mesh.violations


@pytest.mark.parametrize("top", TOPS)
def test_verilator_has_nothing_to_warn_of(top: str) -> None:
    assert lint(top) == ""
