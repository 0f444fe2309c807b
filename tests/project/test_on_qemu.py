"""Whole images on QEMU's Cortex-M4, independent of npukit. Images answer, respect the stack bound, report faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers import first_of, need
from npukit.board.board import load_board
from npukit.emulator.qemu import QemuMachine
from npukit.link.fault import DeviceFault
from npukit.link.session import Session
from npukit.project.images.elf import Elf
from project.identity import BUILD_ID, NET, Built, build_identity, identity_sources

BOARD = "mps2-an386"
PAINT = (0x5AFEC0DE).to_bytes(4, "little")


@contextmanager
def running(built: Built, board: str = BOARD) -> Iterator[Session]:
    machine = QemuMachine(load_board(board), built.images[0].elf)
    with Session(machine, bytes.fromhex(BUILD_ID), answer_seconds=5) as session:
        yield session


def built_with(folder: Path, compiler: str, *changes: tuple[str, str], board: str = BOARD) -> Built:
    """The identity net with `changes` to the text, for a board with QEMU."""
    need(load_board(board).core.type.architecture.qemu)
    net = NET.read_text().replace("{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}", _build_id_as_c())
    for old, new in changes:
        assert old in net
        net = net.replace(old, new)
    return build_identity(board, compiler, folder, identity_sources(load_board(board), net=net))


def _build_id_as_c() -> str:
    return "{" + ", ".join(map(str, bytes.fromhex(BUILD_ID))) + "}"


ALL_DATA_READABLE = (
    "{{net_activations.arena, sizeof net_activations.arena, true}}",
    "{{(uint8_t *)0x20000000, 4 << 20, true}}",
)


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_it_answers_and_uses_no_more_stack_than_its_bound(tmp_path: Path, compiler: str) -> None:
    built = built_with(tmp_path, compiler, ALL_DATA_READABLE)
    with running(built) as session:
        session.write_input(0, bytes(range(64)))
        assert session.run(observe=True).status == 0
        assert session.read_output(0) == bytes(range(64))
        used = _stack_used(session, built)
    report = built.images[0].stack
    assert report.program_bytes // 2 < used <= report.program_bytes


def _stack_used(session: Session, built: Built) -> int:
    symbols = Elf(built.images[0].elf).symbols
    bottom, top = symbols["__stack_bottom"], symbols["__stack_top"]
    stack = session.read_memory(bottom, top - bottom)
    words = [stack[at : at + 4] for at in range(0, len(stack), 4)]
    untouched = next(i for i, word in enumerate(words) if word != PAINT)
    return len(stack) - 4 * untouched


@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
@pytest.mark.parametrize(
    ("board", "cause", "address"),
    [
        ("mps2-an386", "bus error on a data access", 0xD000_0000),
        ("mps2-an505", "bus error on a data access", 0xD000_0000),
        ("microbit", "a fault of which the core does not say more", 0),
        ("riscv-virt", "load from forbidden memory", 0xD000_0000),
    ],
)
def test_a_fault_is_reported_with_its_place_and_cause(
    tmp_path: Path, compiler: str, board: str, cause: str, address: int
) -> None:
    wild = "uint32_t i = 0; i < BYTES; i++"
    read = ("for (" + wild, "*(volatile uint32_t *)0xD0000000;\n    for (" + wild)
    built = built_with(tmp_path, compiler, read, board=board)
    with running(built, board) as session, pytest.raises(DeviceFault, match=cause) as caught:
        session.run()
    functions = Elf(built.images[0].elf).functions.values()
    assert [f.name for f in functions if f.address <= caught.value.pc < f.end] == ["net_run"]
    assert caught.value.address == address


def test_both_compilers_compute_the_same(tmp_path: Path) -> None:
    digests = []
    for compiler in ("zig", "gcc"):
        with running(built_with(tmp_path / compiler, compiler)) as session:
            session.write_input(0, bytes(reversed(range(64))))
            session.run(observe=True)
            digests.append([layer.digest for layer in session.layers(0, 1)])
    assert digests[0] == digests[1]


def test_an_stm32f4_gives_the_same_bytes(tmp_path: Path) -> None:
    net = NET.read_text().replace("{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}", _build_id_as_c())
    board = load_board("netduinoplus2")
    need(board.core.type.architecture.qemu)
    built = build_identity(board.name, "zig", tmp_path, identity_sources(board, net=net))
    with running(built, board.name) as session:
        session.write_input(0, bytes(range(64)))
        result = session.run(observe=True)
        assert session.read_output(0) == bytes(range(64))
    assert result.instructions > 64
