"""QEMU as a board: an emulator independent of npukit, for checks of single-PE builds."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from npukit.board.board import Board, Qemu
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR
from npukit.host.programs import find_program, start

_SECONDS_TO_END = 2.0
_SECONDS_BETWEEN_WAKES = 0.05
_MOST_BYTES = 1 << 16


class QemuMachine:
    """QEMU with one image, or with one for each core. As a link transport: the byte stream of the machine's first UART.
    An instruction takes a virtual nanosecond (`-icount shift=0`): the board's timer counts instructions."""

    def __init__(self, board: Board, elf: Path, others: Sequence[Path] = ()) -> None:
        """`others`: images of the cores after the first."""
        if board.qemu is None:
            raise NpukitError(f"board {board.name} does not run on QEMU")
        architecture = board.core.type.architecture
        name = architecture.qemu
        program = find_program(name)
        if program is None:
            raise NpukitError(
                f"{name} is not on PATH",
                tries=[
                    *(["--on emulator"] if "emulator" in board.runs_on else []),
                    f"apt install {architecture.qemu_package}",
                    "brew install qemu",
                    "https://www.qemu.org/download",
                ],
            )
        self._monitor, theirs = socket.socketpair()
        self._heard = False
        with theirs:
            self._process = start(
                _command(program, board.qemu, elf, others, theirs.fileno()),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=[theirs.fileno()],
                memory=EMULATOR,
            )

    def __enter__(self) -> QemuMachine:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
        except (OSError, ValueError) as error:
            raise self._ended() from error

    def read(self, timeout: float) -> bytes:
        assert self._process.stdout is not None
        until = monotonic() + timeout
        while True:
            left = max(until - monotonic(), 0)
            wait = left if self._heard else min(left, _SECONDS_BETWEEN_WAKES)
            if select.select([self._process.stdout], [], [], wait)[0]:
                break
            if monotonic() >= until:
                return b""
            self._wake()
        data = self._process.stdout.read(_MOST_BYTES)
        if not data:
            raise self._ended()
        self._heard = True
        return data

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(_SECONDS_TO_END)
        self._monitor.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _wake(self) -> None:
        """Have QEMU poll the serial line again. Bytes wait until the firmware enables the UART. QEMU does not notice,
        because the main loop sleeps until other input wakes it, for example an empty line for the monitor."""
        with suppress(OSError):
            self._monitor.send(b"\n", socket.MSG_DONTWAIT)
            self._monitor.recv(_MOST_BYTES, socket.MSG_DONTWAIT)

    def _ended(self) -> NpukitError:
        try:
            status = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            return NpukitError("QEMU closed its serial line")
        if status < 0:
            return NpukitError(f"QEMU was killed by {signal.Signals(-status).name}", tries=["the same command again"])
        words = self._process.stderr.read().decode(errors="replace").strip() if self._process.stderr else ""
        return NpukitError(f"QEMU ended with status {status}" + (f": {words.splitlines()[-1]}" if words else ""))


def _command(program: str, qemu: Qemu, elf: Path, others: Sequence[Path], monitor: int) -> list[str]:
    loaders = (f"loader,file={other.resolve()},cpu-num={core}" for core, other in enumerate(others, 1))
    return [
        program,
        *(["-cpu", qemu.cpu] if qemu.cpu else []),
        *("-machine", qemu.machine, "-icount", "shift=0", "-bios", "none", "-kernel", str(elf.resolve())),
        *("-nodefaults", "-display", "none", "-serial", "stdio"),
        *("-chardev", f"socket,id=monitor,fd={monitor}", "-mon", "chardev=monitor,mode=readline"),
        *(word for loader in loaders for word in ("-device", loader)),
    ]
