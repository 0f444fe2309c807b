"""QEMU as a transport: a firmware that echoes, and errors if QEMU or the image is missing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from helpers import ZIG, need
from npukit.board.board import load_board
from npukit.emulator.qemu import QemuMachine
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR

ECHO = r"""
#include <stdint.h>
#define UART ((volatile uint32_t *)0x40004000)
void reset_handler(void);
void reset_handler(void)
{
    UART[4] = 16;
    /* Long enough for bytes to wait before the UART is enabled. */
    for (volatile uint32_t i = 0; i < 20000000U; i++) {
    }
    UART[2] = 3;
    for (;;) {
        if (UART[1] & 2U) {
            UART[0] = UART[0];
        }
    }
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (void *)0x20400000,
    (void *)reset_handler,
};
"""
LINK = "SECTIONS { . = 0; .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } .ARM.exidx : { *(.ARM.exidx*) } }"
ZIG_M4 = (*ZIG, "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp")


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("qemu-system-arm")
    folder = tmp_path_factory.mktemp("echo")
    (folder / "echo.c").write_text(ECHO)
    (folder / "link.ld").write_text(LINK)
    flags = ("-O1", "-nostdlib", f"-Wl,-T,{folder / 'link.ld'}", "-Wl,-e,reset_handler")
    subprocess.run([*ZIG_M4, *flags, str(folder / "echo.c"), "-o", str(folder / "echo.elf")], check=True)
    return folder / "echo.elf"


def test_bytes_come_back_even_those_sent_before_anyone_listened(echo: Path) -> None:
    got = b""
    with QemuMachine(load_board("mps2-an386"), echo) as machine:
        machine.write(b"hello, mesh")
        for _ in range(200):
            got += machine.read(0.5)
            if len(got) == 11:
                break
        assert machine.read(0.1) == b""
        process = machine._process
    assert got == b"hello, mesh"
    assert process.poll() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds other processes on Linux")
def test_qemu_has_a_budget_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for QEMU, queried while running."""
    (tmp_path / "qemu-system-arm").write_text("#!/bin/sh\necho runs\nexec cat\n")
    (tmp_path / "qemu-system-arm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with QemuMachine(load_board("mps2-an386"), tmp_path / "any.elf") as machine:
        assert machine.read(5) == b"runs\n"
        assert resource.prlimit(machine._process.pid, resource.RLIMIT_DATA) == (EMULATOR, EMULATOR)


def test_an_image_that_is_not_there_is_said(echo: Path) -> None:
    missing = echo.with_name("missing.elf")
    error = pytest.raises(NpukitError, match=r"QEMU ended with status 1: .*missing\.elf")
    with QemuMachine(load_board("mps2-an386"), missing) as machine, error:
        machine.read(10)


def test_a_board_without_qemu_is_refused() -> None:
    with pytest.raises(NpukitError, match="board pe-mesh does not run on QEMU"):
        QemuMachine(load_board("pe-mesh"), Path("any.elf"))


def test_missing_qemu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as empty:
        monkeypatch.setitem(os.environ, "PATH", empty)
        with pytest.raises(NpukitError, match="qemu-system-arm is not on PATH") as raised:
            QemuMachine(load_board("mps2-an386"), Path("any.elf"))
    assert raised.value.tries
