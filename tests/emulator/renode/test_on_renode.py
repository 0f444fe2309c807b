"""The real Renode, where there is one: the same bytes; the Robot suite passes, and a broken image fails it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from emulator.renode.meshes import Frame, nrf52840, one_pe, render_frame, sixteen_pes, stm32f4
from npukit.emulator.builtin import Emulator
from npukit.emulator.renode.machine import RenodeMachine
from npukit.emulator.renode.program import find_renode
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.link.transport import Transport
from npukit.project.image import Image

MESHES = {"one PE": one_pe, "sixteen PEs": sixteen_pes}
STOCK = {"STM32F4": stm32f4, "nRF52840": nrf52840}
FRAMES = MESHES | STOCK


def program(name: str) -> Path:
    try:
        return find_renode(name)
    except NpukitError as error:
        pytest.skip(f"{error.message}: nothing runs on the real Renode")


def outputs(machine: Transport, frame: Frame) -> tuple[bytes, ...]:
    with Session(machine, bytes.fromhex(frame.golden.build_id)) as session:
        return a_run(session, frame)


def a_run(session: Session, frame: Frame) -> tuple[bytes, ...]:
    for index, data in enumerate(frame.golden.inputs):
        session.write_input(index, data)
    session.run()
    return tuple(session.read_output(index) for index in range(len(frame.golden.outputs)))


@pytest.mark.parametrize("name", list(MESHES))
def test_renode_and_the_built_in_emulator_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    program("renode")
    frame = FRAMES[name](tmp_path)
    with Emulator(frame.board, frame.images) as machine:
        assert outputs(machine, frame) == frame.golden.outputs
    with RenodeMachine(frame.board, frame.images) as machine:
        assert outputs(machine, frame) == frame.golden.outputs


@pytest.mark.parametrize("name", list(STOCK))
def test_a_stock_board_on_renode_s_own_platform_gives_the_right_bytes(name: str, tmp_path: Path) -> None:
    program("renode")
    frame = STOCK[name](tmp_path)
    with RenodeMachine(frame.board, frame.images) as machine:
        assert outputs(machine, frame) == frame.golden.outputs


@pytest.mark.parametrize("name", ["sixteen PEs", "STM32F4"])
def test_a_reset_begins_anew(name: str, tmp_path: Path) -> None:
    program("renode")
    frame = FRAMES[name](tmp_path)
    with (
        RenodeMachine(frame.board, frame.images) as machine,
        Session(machine, bytes.fromhex(frame.golden.build_id)) as session,
    ):
        assert a_run(session, frame) == frame.golden.outputs
        last = session.device.pe_count - 1
        assert [pe.frames for pe in session.pes()][last] == 1
        session.reset()
        assert [pe.frames for pe in session.pes()][last] == 0
        assert a_run(session, frame) == frame.golden.outputs


def renode_test(suite: Path, results: Path) -> tuple[int, str]:
    command = [program("renode-test"), "-r", results, suite]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=results)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", list(FRAMES))
def test_the_suite_passes(name: str, tmp_path: Path) -> None:
    program("renode-test")
    frame = FRAMES[name](tmp_path)
    status, text = renode_test(render_frame(frame, tmp_path / "renode"), tmp_path)
    assert status == 0, text
    assert text.count("Finished test") == 3


def constants_offset(elf: Path) -> int:
    """Where in the file they begin."""
    with elf.open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".constants")
        assert section is not None
        return section["sh_offset"]


def test_a_broken_image_fails_the_suite(tmp_path: Path) -> None:
    program("renode-test")
    frame = one_pe(tmp_path)
    elf = tmp_path / "broken.elf"
    broken = bytearray(frame.images[0].elf.read_bytes())
    broken[constants_offset(frame.images[0].elf)] ^= 0x80
    elf.write_bytes(broken)
    status, text = renode_test(render_frame(replace(frame, images=[Image(elf, (0,))]), tmp_path / "renode"), tmp_path)
    assert status != 0
    assert "Golden Frame Is Reproduced" in text.split("Failed robot critical tests")[1]
