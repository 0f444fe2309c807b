"""The real Renode, if installed: equal bytes; the Robot suite passes, and fails with a broken image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from emulator.renode.meshes import Frame, nrf52840, one_pe, render_frame, sixteen_pes, stm32f4
from emulator.renode.real import monitor, program, renode_test
from npukit.emulator.builtin import Emulator
from npukit.emulator.renode.machine import RenodeMachine
from npukit.link.session import Session
from npukit.link.transport import Transport
from npukit.project.images.image import Image

MESHES = {"one PE": one_pe, "sixteen PEs": sixteen_pes}
STOCK = {"STM32F4": stm32f4, "nRF52840": nrf52840}
FRAMES = MESHES | STOCK


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


@pytest.mark.parametrize("name", list(FRAMES))
def test_the_suite_passes(name: str, tmp_path: Path) -> None:
    program("renode-test")
    frame = FRAMES[name](tmp_path)
    status, text = renode_test(render_frame(frame, tmp_path / "renode"), tmp_path)
    assert status == 0, text
    assert text.count("Finished test") == 3


def test_the_monitor_names_registers_and_shows_what_devices_do(tmp_path: Path) -> None:
    frame = one_pe(tmp_path)
    render_frame(frame, tmp_path / "renode")
    asked = ["sysbus.macArray0 BusyCycles", "sysbus.macArray0 Error", "sysbus.noc0 Flags", "sysbus.mesh DramBytes"]
    traced = "sysbus LogPeripheralAccess sysbus.macArray0"
    write = "sysbus WriteDoubleWord 0xE3000000 0x4 sysbus.cpu0"
    read = "sysbus ReadDoubleWord 0xE3000010 sysbus.cpu0"
    text = monitor([f"include @{tmp_path}/renode/run.resc", traced, write, read, *asked], tmp_path)
    assert "WriteUInt32 to 0x0 (Doorbell)" in text
    assert "macArray0: MAC array: error 2 at command 0x4: not 16-byte aligned, or outside SRAM" in text
    assert "(Error), returned 0x2" in text
    assert frame.board.noc is not None
    values = text[text.index("returned 0x2") :].split()
    assert values.count("0x00000002") == 2  # the value read, and the property
    assert values.count("0x00000000") + values.count("0x00000000,") == 1 + frame.board.noc.flags  # no busy cycle either
    assert "0x80000000" in values


def constants_offset(elf: Path) -> int:
    """Offset of the constants in the file."""
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
