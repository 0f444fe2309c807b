"""Whole images on the built-in emulator: the processing element's own hardware."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.link.session import Session
from npukit.project.elf import Elf
from npukit.project.image import Image
from project.identity import Built, build_identity, identity_sources

BOARD = "pe-mesh"
PAINT = (0x5AFEC0DE).to_bytes(4, "little")
THERE_AND_BACK = Path(__file__).parent / "nets" / "there_and_back.c"


@contextmanager
def running(built: Built) -> Iterator[tuple[Session, Emulator]]:
    images = [Image(image.elf, image.pes) for image in built.images]
    with Emulator(load_board(BOARD), images) as emulator, Session(emulator) as session:
        yield session, emulator


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_it_answers_and_uses_no_more_stack_than_its_bound(tmp_path: Path, compiler: str) -> None:
    built = build_identity(BOARD, compiler, tmp_path)
    with running(built) as (session, emulator):
        session.write_input(0, bytes(range(64)))
        result = session.run(observe=True)
        assert session.read_output(0) == bytes(range(64))
        used = stack_used(emulator, built)
    assert result.instructions > 64
    assert result.cycles >= result.instructions
    report = built.images[0].stack
    assert report.program_bytes // 2 < used <= report.program_bytes


def stack_used(emulator: Emulator, built: Built) -> int:
    symbols = Elf(built.images[0].elf).symbols
    bottom, top = symbols["__stack_bottom"], symbols["__stack_top"]
    stack = emulator.read_memory(0, bottom, top - bottom)
    words = [stack[at : at + 4] for at in range(0, len(stack), 4)]
    untouched = next(i for i, word in enumerate(words) if word != PAINT)
    return len(stack) - 4 * untouched


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_messages_go_to_another_pe_and_back_frame_after_frame(tmp_path: Path, compiler: str) -> None:
    sources = replace(
        identity_sources(load_board(BOARD), net=THERE_AND_BACK.read_text()),
        constant_bytes=96,
        activation_bytes=64 + 16 + 128,
    )
    with running(build_identity(BOARD, compiler, tmp_path, sources)) as (session, _):
        for frame in range(20):
            session.write_input(0, bytes(range(frame, frame + 64)))
            assert session.run().status == 0
            assert session.read_output(0) == bytes(range(frame + 1, frame + 65))
