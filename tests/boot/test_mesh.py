"""A full chip of 152 PEs: loaded from its flash in time, and each PE reached over the link."""

from __future__ import annotations

import struct
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from boot.boards import build_there_and_back, computes, update_of
from helpers import toolchain
from npukit.board.board import load_board
from npukit.boot.load_time import load_cycles
from npukit.boot.loader import flash_of, loader_area
from npukit.boot.mesh_image import distinct_programs
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version
from npukit.emulator.flashed import FlashedBoard
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.project.images.image import Image
from project.identity import Built

BOARD = load_board("pe-mesh-152")
CLOCK = BOARD.core.clock_hz


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build_there_and_back(BOARD, tmp_path_factory.mktemp("net"))


def flash_with(loader: bytes, image: bytes, file: Path) -> Path:
    """A flash whose first slot holds the image, confirmed."""
    flash = flash_of(BOARD)
    state = struct.pack("<4sIBBBB", b"NPST", 1, 0, 0xFF, 0, 0)
    content = bytearray(loader.ljust(flash.bytes, b"\xff"))
    for at, part in (
        (flash.state_offset, state + struct.pack("<I", zlib.crc32(state))),
        (flash.slot_offset(0), image),
    ):
        content[at : at + len(part)] = part
    file.write_bytes(content)
    return file


@pytest.mark.exhaustive
def test_152_pes_are_loaded_in_time_and_each_answers_a_routed_request(built: Built, tmp_path: Path) -> None:
    update = update_of(BOARD, built, Version(1), None)
    file = flash_with(
        loader_area(BOARD, takes_of(None).record(), toolchain("zig")), update.image.data, tmp_path / "flash"
    )
    with closing(FlashedBoard(BOARD, file)) as board:
        session = Session(board, update.build_id)
        session.open()
        taken = board.time()
        assert taken < 2 * CLOCK
        programs = distinct_programs([Image(image.elf, image.pes) for image in built.images])
        predicted = load_cycles(BOARD, programs, (), len(update.image.data), signed=False)
        assert abs(taken - predicted) < 0.03 * CLOCK, "with the handshake over the wire"
        (code,) = (segment for segment in programs[0].segments if segment.address == 0)
        for pe in range(1, BOARD.pe_count):
            assert session.read_memory(0, 60, pe) == code.data[:60], f"PE {pe}"
        with pytest.raises(NpukitError, match="no way to that PE"):
            session.read_memory(0, 4, BOARD.pe_count)
        assert computes(session)
