"""The C server as Cortex-M4 code, with the firmware's own HAL and startup, in an independent emulator."""

from __future__ import annotations

import os
import select
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from helpers import need
from link.device_process import DEVICE, WARNINGS, ZIG_M4, includes, server_sources
from npukit.board.board import Board, load_board
from npukit.data import data_folder
from npukit.link.fault import DeviceFault
from npukit.link.session import Session
from npukit.project.toolchain import LINK_FLAGS

IMAGE = bytes(i * 3 % 256 for i in range(900))
SHIFTED = bytes((byte + 9) % 256 for byte in IMAGE)


@pytest.fixture(scope="module")
def board() -> Board:
    return load_board("mps2-an386")


@pytest.fixture(scope="module")
def program(board: Board, tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("qemu-system-arm")
    folder = tmp_path_factory.mktemp("mps2")
    (folder / "board.h").write_text(board_header(board))
    firmware = data_folder("firmware")
    sources = [*server_sources(), DEVICE / "mps2.c", DEVICE / "shifter.c"]
    sources += [firmware / "startup" / "startup.c", *(firmware / "cortex_m").glob("*.c")]
    sources += [firmware / "hal" / f"{name}.c" for name in ("mps2_an386", "single_core")]
    sources += [firmware / "libc" / "string.c"]
    options = [
        "-O2",
        *WARNINGS,
        *includes(),
        f"-I{folder}",
        f"-I{firmware / 'cortex_m'}",
        f"-I{firmware / 'libc'}",
        "-DPES=1",
        "-DPE=0",
        "-T",
        str(DEVICE / "mps2.ld"),
    ]
    options += LINK_FLAGS["zig"].split()
    command = [*ZIG_M4, *options, *map(str, sources), "-o", str(folder / "firmware.elf")]
    subprocess.run(command, check=True, timeout=120)
    return folder / "firmware.elf"


def board_header(board: Board) -> str:
    assert board.qemu
    numbers = {
        "TIMER_BASE": board.timer.base,
        "UART_BASE": board.uart.base,
        "UART_BAUD": board.uart.baud,
        "CLOCK_HZ": board.core.clock_hz,
        "CYCLES_PER_1024_TICKS": 1024 * board.core.clock_hz // (board.timer.hz or board.core.clock_hz),
        "INSTRUCTIONS_PER_1024_TICKS": int(1024 * board.qemu.instructions_per_tick),
    }
    return "#include <stdint.h>\n" + "".join(f"#define BOARD_{name} {value}U\n" for name, value in numbers.items())


class QemuLine:
    """The UART of a QEMU machine on the machine's standard input and output."""

    def __init__(self, machine: str, program: Path) -> None:
        command = ["qemu-system-arm", "-M", machine, "-kernel", str(program), "-display", "none", "-monitor", "none"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*command, "-serial", "stdio"], stdin=pipe, stdout=pipe, bufsize=0)
        self._to, self._from = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)

    def write(self, data: bytes) -> None:
        self._to.write(data)

    def read(self, timeout: float) -> bytes:
        readable = select.select([self._from], [], [], timeout)[0]
        return os.read(self._from.fileno(), 1 << 16) if readable else b""

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)
        self._to.close()
        self._from.close()


@pytest.fixture
def session(board: Board, program: Path) -> Iterator[Session]:
    assert board.qemu
    with Session(QemuLine(board.qemu.machine, program)) as session:
        yield session


def test_a_frame_goes_in_and_comes_out(session: Session) -> None:
    session.write_input(0, IMAGE)
    session.write_input(1, b"\x09\0")
    result = session.run(observe=True)
    assert session.read_output(0) == SHIFTED
    assert session.layers(0, 40)[0].digest == zlib.crc32(SHIFTED)
    assert result.cycles > 0


def test_memory_is_written_and_read(session: Session) -> None:
    session.write_memory(0x2000_1000, IMAGE)
    assert session.read_memory(0x2000_1000, 900) == IMAGE


def test_a_real_fault_is_told(session: Session, program: Path) -> None:
    session.write_input(1, b"\0\2")
    with pytest.raises(DeviceFault, match="bus error on a data access at data address 0xd0000000") as caught:
        session.run()
    assert caught.value.pc in code_of("stop", program)


def code_of(function: str, program: Path) -> range:
    with program.open("rb") as file:
        symbols = cast(SymbolTableSection, ELFFile(file).get_section_by_name(".symtab"))
        (symbol,) = symbols.get_symbol_by_name(function) or []
    start = symbol["st_value"] & ~1
    return range(start, start + symbol["st_size"])
