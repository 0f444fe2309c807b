"""A board's hardware abstraction layer: the C for clock and link, npukit's own or a user's."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from npukit.board.board import Board
from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.host.programs import run
from npukit.project.images.elf import Elf
from npukit.project.toolchain import Toolchain

FOLDER = "hal"
_ONE_CORE = "single_core"
"""The file, with a header, shared by boards without a mesh."""
_DECLARED = re.compile(r"^[^#/*\n]*?\b((?:hal|clock)_\w+|core_number)\(", re.MULTILINE)
_SECONDS = 60


def hal_source(board: Board) -> Path:
    """The board's C file."""
    own = data_folder("firmware") / FOLDER / f"{board.hal}.c"
    source = board.hal_file or own
    if source.is_file():
        return source
    known = ", ".join(sorted(path.stem for path in own.parent.glob("*.c") if path.stem != _ONE_CORE))
    tries = [f"one of npukit's: {known}", 'hal = "FILE.c", beside the board file', "npukit new board NAME"]
    raise NpukitError(f"board {board.name} has the hal {source.name}, which is not there", tries=tries)


def hal_sources(board: Board) -> tuple[Path, ...]:
    """The C files of the board's hardware abstraction layer."""
    return (hal_source(board), *([data_folder("firmware") / FOLDER / f"{_ONE_CORE}.c"] if board.stock else []))


def copy_hal(board: Board, target: Path) -> None:
    """Copy the board's C, and the included headers of the folder; all headers for a user's C."""
    target.mkdir()
    for source in hal_sources(board):
        text = source.read_text(encoding="utf-8")
        for path in (source, *source.parent.glob("*.h")):
            if path == source or source == board.hal_file or f'"{path.name}"' in text:
                shutil.copyfile(path, target / path.name)


def missing_functions(board: Board, toolchain: Toolchain) -> list[str]:
    """The functions of `hal.h` that the board's C does not define. Raises an error if the C does not compile."""
    from npukit.project.render import render_board_header

    firmware = data_folder("firmware")
    include = firmware / "include"
    with tempfile.TemporaryDirectory() as folder:
        render_board_header(board, Path(folder) / "board.h")
        sources, defined = hal_sources(board), set[str]()
        own = firmware / board.core.type.architecture.firmware
        folders = [Path(folder), include, firmware / "noc", own, *{source.parent for source in sources}]
        for source in sources:
            output = Path(folder) / f"{source.stem}.o"
            _compile(board, toolchain, source, folders, output)
            defined |= Elf(output).function_names
    headers = [include / "hal.h", *([firmware / FOLDER / f"{_ONE_CORE}.h"] if board.stock else [])]
    declared = {name for header in headers for name in _DECLARED.findall(header.read_text(encoding="utf-8"))}
    declared |= {*board.core.type.architecture.board_functions} if board.stock else set[str]()
    declared -= set[str]() if board.shares_memory else {"core_number"}
    return sorted(declared - defined)


def _compile(board: Board, toolchain: Toolchain, source: Path, folders: list[Path], output: Path) -> None:
    includes = [PurePosixPath(folder.resolve().as_posix()) for folder in folders]
    path = PurePosixPath(source.resolve().as_posix())
    command = toolchain.compile_command(board.core.type, path, "size", includes, source.parent, output)
    done = run(command, output.parent, seconds=_SECONDS)
    if done.returncode != 0:
        raise NpukitError(f"{toolchain.title} does not compile {source.name}: {done.stderr.strip()[:800]}")
