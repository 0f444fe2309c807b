"""Renode as a board, an emulator familiar to the chip's users, with npukit's devices in C#. Also finds Renode."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from npukit.board.board import Board
from npukit.emulator.renode.render import SCRIPT, Dram, objection, render_renode
from npukit.errors import NpukitError
from npukit.host.budget import EMULATOR
from npukit.host.programs import find_program, start
from npukit.project.images.image import Image

_SECONDS_TO_START = 120.0
_SECONDS_TO_END = 5.0
_POLL_SECONDS = 0.1
_MOST_BYTES = 1 << 16


class RenodeMachine:
    """Renode with images. As a link transport: the byte stream of the root PE's UART, over a local port. Renode listens
    on no other port, and ends when the link closes in any way."""

    def __init__(self, board: Board, images: Sequence[Image], dram: Dram | None = None) -> None:
        if (refusal := objection(board, images)) is not None:
            raise refusal
        program = find_renode()
        self._folder = tempfile.TemporaryDirectory(prefix="npukit-renode-")
        self._log = Path(self._folder.name) / "log.txt"
        render_renode(board, images, Path(self._folder.name), dram)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self._process = self._start(program, port)
        self._link: socket.socket | None = None
        try:
            self._link = self._connect(port)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> RenodeMachine:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        assert self._link is not None
        try:
            self._link.sendall(data)
        except OSError as error:
            raise self._ended() from error

    def read(self, timeout: float) -> bytes:
        assert self._link is not None
        try:
            if not select.select([self._link], [], [], max(timeout, 0))[0]:
                return b""
            data = self._link.recv(_MOST_BYTES)
        except OSError as error:
            raise self._ended() from error
        if not data:
            raise self._ended()
        return data

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
        with suppress(OSError):  # the whole group: `renode` may be a script with children
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_SECONDS_TO_END)
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._folder.cleanup()

    def _start(self, program: Path, port: int) -> subprocess.Popen[bytes]:
        # Without --console Renode opens a port for the Monitor to the whole network. With --console, stdin must stay
        # open.
        script = Path(self._folder.name) / SCRIPT
        commands = f"$port={port}; $leave=true; include @{script}; start"
        with self._log.open("wb") as log:
            return start(
                [program, "--console", "--plain", "--disable-xwt", "-e", commands],
                Path(self._folder.name),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                memory=EMULATOR,
            )

    def _connect(self, port: int) -> socket.socket:
        until = monotonic() + _SECONDS_TO_START
        while monotonic() < until and self._process.poll() is None and not self._complaint():
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), _POLL_SECONDS)
            sleep(_POLL_SECONDS)
        raise NpukitError(f"Renode did not start the board: {self._complaint() or 'it says nothing'}")

    def _complaint(self) -> str:
        """The complaint in Renode's log, in one line; empty if there is none."""
        text = self._log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines()]
        complaints = ("There was an error", "Errors during", "[ERROR] FATAL")
        first = next((number for number, line in enumerate(lines) if line.startswith(complaints)), len(lines))
        return " ".join(lines[first : first + 3])

    def _ended(self) -> NpukitError:
        return NpukitError(f"Renode ended: {self._complaint() or 'it hung up'}")


RENODE_VARIABLE = "RENODE_PATH"


def find_renode(name: str = "renode") -> Path:
    """Path of a Renode program (`renode`, `renode-test`): in RENODE_PATH, a folder or the program, or on PATH."""
    given = os.environ.get(RENODE_VARIABLE)
    path = Path(given).resolve() if given else None
    found = find_program(name, str(path if path.is_dir() else path.parent) if path else None)
    if found is None:
        raise NpukitError(
            f"{RENODE_VARIABLE} is {given}, and there is no {name}" if given else f"{name} is not on PATH",
            tries=[
                "install Renode 1.15 or 1.16: https://github.com/renode/renode/releases",
                f"{RENODE_VARIABLE}=FOLDER, if it is installed elsewhere",
            ],
        )
    return Path(found)
