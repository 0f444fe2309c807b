"""The C server as a process of this machine, and a transport to the process."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path
from time import monotonic
from typing import IO, cast

from helpers import GCC, HOST_COMPILER, ZIG
from npukit.data import data_folder

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
ZIG_M4 = [
    *ZIG,
    "-target",
    "thumb-freestanding-eabihf",
    "-mcpu=cortex_m4+vfp4d16sp",
    "-fno-unroll-loops",
    "-fno-vectorize",
]
GCC_M4 = [GCC, "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-ffreestanding"]
DEVICE = Path(__file__).parent / "device"
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def server_sources() -> list[Path]:
    return sorted((data_folder("firmware") / "rpc").glob("*.c"))


def includes() -> list[str]:
    firmware = data_folder("firmware")
    return [f"-I{firmware / 'include'}", f"-I{firmware / 'rpc'}"]


def build_device(folder: Path) -> Path:
    """The server and the test net, compiled for this machine."""
    own = (DEVICE / name for name in ("device.c", "pipes.c", "shifter.c"))
    return compile_here([*WARNINGS, *includes(), *map(str, [*server_sources(), *own])], folder / "device")


def compile_here(command: list[str], program: Path) -> Path:
    """A program for this machine, with sanitizers if the compiler has them."""
    sanitizers = [] if HOST_COMPILER[0] == ZIG[0] else SANITIZERS
    command = [*HOST_COMPILER, "-O1", "-D_DEFAULT_SOURCE", *command, "-o", str(program)]
    if subprocess.run([*command, *sanitizers], capture_output=True).returncode != 0:
        subprocess.run(command, check=True)
    return program


class Pipes:
    """A transport to a device process. Like an emulator, it detects when the firmware sleeps."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._to = cast(IO[bytes], self._process.stdin)
        self._from = cast(IO[bytes], self._process.stdout)
        self._reports = cast(IO[bytes], self._process.stderr)
        self._written = 0
        self._read_by_device = -1

    def write(self, data: bytes) -> None:
        self._to.write(data)
        self._written += len(data)

    def read(self, timeout: float) -> bytes:
        until = monotonic() + timeout
        while (left := until - monotonic()) > 0:
            readable = self._readable(0 if self._read_by_device == self._written else left)
            if self._from in readable:
                return os.read(self._from.fileno(), 1 << 16)
            if self._asleep(readable):
                return b""
        return b""

    def close(self) -> None:
        for stream in (self._to, self._from, self._reports):
            stream.close()
        self._process.kill()
        self._process.wait(10)

    def _readable(self, timeout: float) -> list[IO[bytes]]:
        return select.select([self._from, self._reports], [], [], timeout)[0]

    def _asleep(self, readable: list[IO[bytes]]) -> bool:
        """True if the device has read all input, and all its output has been read here."""
        if self._reports in readable:
            reports = os.read(self._reports.fileno(), 1 << 16)
            if len(reports) % 4:
                raise AssertionError(f"the device died: {reports.decode(errors='replace')}")
            self._read_by_device = int.from_bytes(reports[-4:], "little") if reports else self._written
        return self._read_by_device == self._written and self._from not in self._readable(0)
