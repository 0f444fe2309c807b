"""The C server as a process of this machine, and a transport to it."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from time import monotonic

from npukit.data import data_folder

WARNINGS = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
ZIG = [sys.executable, "-m", "ziglang", "cc"]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def server_sources() -> list[Path]:
    return sorted((data_folder("firmware") / "rpc").glob("*.c"))


def includes() -> list[str]:
    firmware = data_folder("firmware")
    return [f"-I{firmware / 'include'}", f"-I{firmware / 'rpc'}"]


def build_device(folder: Path) -> Path:
    """The server and its test net, compiled for this machine; with sanitizers where the compiler has them."""
    sources = [*map(str, server_sources()), str(Path(__file__).parent / "device" / "device.c")]
    program = folder / "device"
    compiler = [shutil.which("cc") or ZIG[0], *(() if shutil.which("cc") else ZIG[1:])]
    command = [*compiler, "-O1", "-D_DEFAULT_SOURCE", *WARNINGS, *includes(), *sources, "-o", str(program)]
    if subprocess.run([*command, *SANITIZERS], capture_output=True).returncode != 0:
        subprocess.run(command, check=True)
    return program


class Pipes:
    """A transport to a device process; knows, as an emulator does, when the firmware sleeps."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        self._written = 0
        self._read_by_device = -1

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self._written += len(data)

    def read(self, timeout: float) -> bytes:
        assert self.process.stdout
        until = monotonic() + timeout
        while (left := until - monotonic()) > 0:
            readable = self._readable(left)
            if self.process.stdout in readable:
                return os.read(self.process.stdout.fileno(), 1 << 16)
            if self._asleep(readable):
                return b""
        return b""

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()
        self.process.kill()
        self.process.wait(10)

    def complaints(self) -> bytes:
        """What the sanitizers said, once the device has ended."""
        assert self.process.stdin
        assert self.process.stderr
        self.process.stdin.close()
        return self.process.stderr.read()

    def _readable(self, timeout: float) -> list:
        return select.select([self.process.stdout, self.process.stderr], [], [], timeout)[0]

    def _asleep(self, readable: list) -> bool:
        """The device has read all there was; what it sent before it fell asleep would have been seen first."""
        assert self.process.stderr
        if self.process.stderr in readable:
            reports = os.read(self.process.stderr.fileno(), 1 << 16)
            if len(reports) % 4:
                raise AssertionError(f"the device died: {reports.decode(errors='replace')}")
            self._read_by_device = int.from_bytes(reports[-4:], "little") if reports else self._written
        return self._read_by_device == self._written and not self._readable(0)
