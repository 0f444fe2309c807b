"""The vectors in docs/vectors/loader.txt equal the frames of host and loader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers import CHECKOUT, toolchain
from npukit.board.board import load_board
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.emulator.flashed import FlashedBoard
from npukit.link import flash
from npukit.link.frames import encode_frame
from npukit.link.messages import Request, pack_request

SESSION = 0x1234
REQUESTS: list[Request] = [
    flash._Identify(),
    flash._DescribeSlot(0),
    flash._ErasePage(0, 0),
    flash._WriteSlot(0, 0, bytes([0x3D, 0xB8, 0xF3, 0x96, 0, 0, 0, 0])),
    flash._WriteSlot(0, 0, bytes([0xFF] * 4)),
    flash._TrySlot(0, False, bytes(32)),
    flash._Abandon(),
    flash._DigestPages(0, 511),
    flash._Provision(takes_of(None).record()),
    flash._Provision(takes_of(bytes(32)).record()),
    flash._Boot(),
]


def vectors() -> list[tuple[str, str]]:
    """The frames after `>` and `<` in the file."""
    text = (CHECKOUT / "docs/vectors/loader.txt").read_text()
    pairs = re.findall(r"((?:^> [0-9a-f ]+\n)+)((?:^< [0-9a-f ]+\n)+)", text, re.MULTILINE)
    return [(_joined(sent), _joined(got)) for sent, got in pairs]


def test_every_request_has_a_vector() -> None:
    text = (CHECKOUT / "docs/protocol.md").read_text()
    documented = re.findall(r"^\| 0x([0-9a-f]+) \| [A-Z_]+ \|", text, re.MULTILINE)
    assert {request.kind for request in REQUESTS} == {int(kind, 16) for kind in documented} == set(range(0x20, 0x29))


def _joined(lines: str) -> str:
    return " ".join(re.findall(r"\b[0-9a-f]{2}\b", lines))


def exchanged(board: FlashedBoard) -> list[tuple[str, str]]:
    board.restart()
    frames = [encode_frame(pack_request(request, number, SESSION)) for number, request in enumerate(REQUESTS, 1)]
    return [(frame.hex(" "), _answer(board, frame).hex(" ")) for frame in frames]


def _answer(board: FlashedBoard, frame: bytes) -> bytes:
    board.write(frame)
    received = b""
    while data := board.read(30):
        received += data
    return received


@pytest.mark.exhaustive
def test_host_and_loader_say_what_the_document_says(tmp_path: Path) -> None:
    board = load_board("pe-mesh")
    with FlashedBoard(board, tmp_path / "flash", loader_area(board, b"", toolchain("zig"))) as running:
        assert isinstance(running, FlashedBoard)
        assert exchanged(running) == vectors()
