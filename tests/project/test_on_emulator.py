"""Whole images on the built-in emulator, with the hardware of the processing element."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.link.session import GIVEN_UP, Session
from npukit.project.images.elf import Elf
from npukit.project.images.image import Image
from project.identity import Built, build_identity, identity_sources

BOARD = "pe-mesh"
PAINT = (0x5AFEC0DE).to_bytes(4, "little")
BROKEN = 0xBD
"""First input byte on which PE 1 fails."""
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


def there_and_back(compiler: str, folder: Path, net: str | None = None) -> Built:
    sources = replace(
        identity_sources(load_board(BOARD), net=net or THERE_AND_BACK.read_text()),
        constant_bytes=96,
        activation_bytes=64 + 16 + 128,
    )
    return build_identity(BOARD, compiler, folder, sources)


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_messages_go_to_another_pe_and_back_frame_after_frame(tmp_path: Path, compiler: str) -> None:
    with running(there_and_back(compiler, tmp_path)) as (session, _):
        for frame in range(20):
            session.write_input(0, bytes(range(frame, frame + 64)))
            assert session.run().status == 0
            assert session.read_output(0) == bytes(range(frame + 1, frame + 65))


def test_messages_that_the_full_queue_refuses_are_sent_again(tmp_path: Path) -> None:
    """PE 0 sends the input a hundred times, each time twenty times over, faster than the DMA drains the queue."""
    once = "const int32_t error = noc_send(&messages[0]);"
    often = "int32_t error = 0;\n    for (int i = 0; i < 100 && error == 0; i++) { error = noc_send(&messages[0]); }"
    net = (
        THERE_AND_BACK.read_text()
        .replace(once, often)
        .replace("noc_wait(WORK_ARRIVED, 1)", "noc_wait(WORK_ARRIVED, 100)")
        .replace(".rows = 1,", ".rows = 20,")
    )
    with running(there_and_back("zig", tmp_path, net)) as (session, emulator):
        session.write_input(0, bytes(range(64)))
        assert session.run().status == 0
        assert session.read_output(0) == bytes(range(1, 65))
        assert emulator.counters(0).device_errors > 0


@pytest.mark.exhaustive
def test_a_pe_that_fails_is_named_and_the_link_lives_on(tmp_path: Path) -> None:
    """PE 0 waits for PE 1 in vain, because PE 1 fails: the host aborts the run and reads the status of every PE."""
    with running(there_and_back("zig", tmp_path)) as (session, _):
        session.write_input(0, bytes([BROKEN, *range(63)]))
        with pytest.raises(NpukitError, match="failed to run on pe-mesh: PE 1 stopped with error code 42"):
            session.run()
        here, there = session.pes()
        assert (here.status, there.status) == (GIVEN_UP, 42)
        with pytest.raises(NpukitError, match="out of step since a run failed: reset the board"):
            session.run()


def test_what_other_pes_hold_is_read_through_the_root(tmp_path: Path) -> None:
    with running(there_and_back("zig", tmp_path)) as (session, emulator):
        session.write_input(0, bytes(range(64)))
        session.run()
        for pe in (1, 15):
            assert session.read_memory(0, 700, pe) == emulator.read_memory(pe, 0, 700)
        with pytest.raises(NpukitError, match=r"may not read .*0x00020000"):
            session.read_memory(0x2_0000, 4, 1)
        with pytest.raises(NpukitError, match="no way to that PE"):
            session.read_memory(0, 4, 16)
        for frame in range(20):  # refused reads leave the message queue unchanged
            session.write_input(0, bytes(range(frame, frame + 64)))
            assert session.run().status == 0
