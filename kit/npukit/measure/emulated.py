"""A build on an emulated board at a local port, for hosts without knowledge of emulators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from npukit.boot.provision import Policy, Takes
from npukit.emulator.here import usual
from npukit.link.emulated_line import EmulatedLine, open_port
from npukit.link.flash_port import emulated_board, update_of
from npukit.link.transport import Transport
from npukit.link.update import flash
from npukit.measure.target import start
from npukit.progress import Progress
from npukit.project.build_folder import Build

VERSION = "0.0.0"
"""The version of the image in a flash without any update."""


@contextmanager
def emulated_line(
    build: Build, tcp: int | None, file: Path | None, new: bool, progress: Progress
) -> Iterator[EmulatedLine]:
    """The build on its board at a pseudo-terminal, or at a TCP port, until the context ends.

    A board with flash starts from the contents in `file`, if the file exists; otherwise from a flash that holds the
    build. `new`: an empty flash from the factory without a provision record.
    """
    with _board(build, file, new, progress) as board, closing(EmulatedLine(board, open_port(tcp))) as line:
        yield line


@contextmanager
def _board(build: Build, file: Path | None, new: bool, progress: Progress) -> Iterator[Transport]:
    if build.board.flash is None:
        with closing(start(build, usual(build.board))) as machine:
            yield machine
        return
    is_there = file is not None and file.exists()
    with emulated_board(build, file, Takes(Policy.NONE if new else Policy.OPEN), progress) as board:
        if not (new or is_there):
            flash(board, update_of(build, None, VERSION), progress)
        yield board
