"""Memory of the loader: actual stack depth against the bound computed from the code, and the size for the largest
board."""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from boot.native import tiny_mesh
from helpers import first_of, toolchain
from npukit.board.board import load_board
from npukit.boot import loader
from npukit.boot.keys import public_bytes
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version, sign_image
from npukit.emulator.flashed import FlashedBoard
from npukit.link.flash import LoaderSession
from npukit.project.images.stack import StackReport, stack_bound
from npukit.project.layout import memory_layout

BOARD = load_board("pe-mesh")


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
def test_a_signature_takes_nearly_the_stack_that_the_bound_says(
    compiler: str, key: Ed25519PrivateKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[StackReport] = []
    monkeypatch.setattr(loader, "stack_bound", lambda *given: reports.append(stack_bound(*given)) or reports[0])
    area = loader.loader_area(BOARD, takes_of(public_bytes(key)).record(), toolchain(compiler))
    report = reports[0]
    assert "signature_is_good" in report.deepest
    stack = memory_layout(BOARD, 0, 0, report.bytes).stack
    with FlashedBoard(BOARD, tmp_path / "flash", area) as board:
        assert isinstance(board, FlashedBoard)
        session = LoaderSession(board)
        session.write(0, sign_image(tiny_mesh(BOARD, bytes(64)), Version(1), key).data)
        session.describe(0)
        content = board.read_memory(0, stack.start, stack.size)
    words = [content[at : at + 4] for at in range(0, len(content), 4)]
    used = 4 * sum(1 for _ in dropwhile(lambda word: word == words[0], words))
    assert report.program_bytes * 0.9 < used <= report.program_bytes


@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
def test_it_fits_beside_the_list_of_the_largest_boards_pes(compiler: str) -> None:
    board = load_board("pe-mesh-7296")
    assert len(loader.build_loader(board, toolchain(compiler))) < loader.flash_of(board).once_offset
