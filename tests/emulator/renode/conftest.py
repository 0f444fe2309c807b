"""The C# devices, compiled once, without Renode."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.renode.devices import Devices, compile_devices
from npukit.board.board import Board, load_board


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_devices(tmp_path_factory.mktemp("devices"))


@pytest.fixture(scope="session")
def board() -> Board:
    return load_board("pe-mesh")


@pytest.fixture
def devices(program: Path, board: Board) -> Iterator[Devices]:
    with Devices(program, board) as running:
        yield running
