"""The loader's RISC-V code on the emulated board."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.boards import build_there_and_back, computes, update_of
from helpers import toolchain
from npukit.board.board import load_board
from npukit.boot.keys import public_bytes
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version
from npukit.emulator.flashed import FlashedBoard
from npukit.link.session import Session
from npukit.link.update import flash


@pytest.mark.exhaustive
def test_a_flashed_board_of_risc_v_cores_computes_after_every_start(tmp_path: Path, key: Ed25519PrivateKey) -> None:
    board = load_board("pe-mesh-rv")
    update = update_of(board, build_there_and_back(board, tmp_path / "net"), Version(1), key)
    loader = loader_area(board, takes_of(public_bytes(key)).record(), toolchain("zig"))
    with FlashedBoard(board, tmp_path / "flash", loader) as flashed:
        assert isinstance(flashed, FlashedBoard)
        assert flash(flashed, update).slot == 0
        assert computes(Session(flashed, update.build_id))
        flashed.power_on()
        assert computes(Session(flashed, update.build_id))
