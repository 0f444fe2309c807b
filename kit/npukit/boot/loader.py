"""The loader: the program in the flash's first pages, compiled for a board and provisioned."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from npukit.board.board import Board, Flash
from npukit.boot.provision import COPIES
from npukit.data import data_folder
from npukit.errors import DoesNotFit, NpukitError
from npukit.project.files import Tuning
from npukit.project.hal import hal_source
from npukit.project.images.elf import Elf
from npukit.project.images.stack import stack_bound
from npukit.project.layout import memory_layout
from npukit.project.render import render_board_header, render_flash_header, render_link_script
from npukit.project.toolchain import Toolchain, find_toolchain
from npukit.project.zig import compile_zig

_FOLDERS = ("startup", "include", "libc", "rpc", "noc", "boot")
_SOURCES: tuple[tuple[str, Tuning], ...] = (
    ("startup/startup.c", "size"),
    ("{core}/core.c", "size"),
    ("libc/string.c", "libc"),
    ("rpc/frame.c", "speed"),
    ("rpc/crc32.c", "speed"),
    ("noc/noc.c", "size"),
)
SIGNATURE = PurePosixPath("boot/signature.zig")
"""Source of SHA-256 and Ed25519."""


def loader_area(board: Board, record: bytes = b"", toolchain: Toolchain | None = None) -> bytes:
    """Factory contents of the loader's area: the loader, and the record of whose images the board takes. A board
    without a record (`boot/provision.py`) starts no image until it is provisioned."""
    flash = flash_of(board)
    program = build_loader(board, toolchain or find_toolchain(core=board.core.type))
    room = flash.once_offset
    if len(program) > room:
        raise DoesNotFit(f"the loader has {len(program)} bytes, its area {room}", tries=["a larger loader_bytes"])
    return program.ljust(room, b"\xff") + (COPIES * record).ljust(flash.once_bytes, b"\xff")


def build_loader(board: Board, toolchain: Toolchain) -> bytes:
    """The loader's bytes in SRAM, from address 0 on."""
    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        build = _Build(board, toolchain, Path(scratch).resolve())
        address, program = Elf(build.link()).binary()
    if address != 0:
        raise NpukitError(f"the loader was linked to {address:#x}, not 0")
    return program


def flash_of(board: Board) -> Flash:
    if board.flash is None:
        raise NpukitError(f"board {board.name} has no flash that npukit knows how to write", tries=["npukit boards"])
    return board.flash


class _Build:
    def __init__(self, board: Board, toolchain: Toolchain, folder: Path) -> None:
        self.board, self.core = board, board.core.type
        self.toolchain = toolchain
        self.folder = folder
        self.firmware = data_folder("firmware").resolve()
        render_board_header(board, folder / "board.h")
        render_flash_header(board, folder / "flash_board.h")

    def link(self) -> Path:
        """The linked loader. Its stack has the bytes required by the call graph."""
        objects = [self._compile(source, tuning) for source, tuning in self._units()]
        objects.append(compile_zig(self.firmware / SIGNATURE, self.folder, self.core.zig.split()))
        stack = stack_bound(self._link(objects, 0, "measured.elf"), objects, self.core)
        return self._link(objects, stack.bytes, "loader.elf")

    def _units(self) -> list[tuple[PurePosixPath, Tuning]]:
        own = sorted(f"boot/{path.name}" for path in (self.firmware / "boot").glob("*.c"))
        units = [*_SOURCES, (hal_source(self.board).as_posix(), "size"), *((name, "size") for name in own)]
        family = self.core.architecture.firmware
        return [(PurePosixPath(name.format(core=family)), tuning) for name, tuning in units]

    def _compile(self, source: PurePosixPath, tuning: Tuning) -> Path:
        output = self.folder / source.name.replace(".c", ".o")
        names = (*_FOLDERS, self.core.architecture.firmware)
        folders = [self.folder, *(self.firmware / name for name in names)]
        includes = [PurePosixPath(path.as_posix()) for path in folders]
        command = self.toolchain.compile_command(self.core, source, tuning, includes, self.firmware, output)
        self._run(command, f"compile {source}")
        return output

    def _link(self, objects: Sequence[Path], stack_bytes: int, name: str) -> Path:
        script = self.folder / f"{name}.ld"
        render_link_script(self.board, memory_layout(self.board, 0, 0, stack_bytes), {}, script)
        self._run(self.toolchain.link_command(self.core, objects, script, self.folder / name), "link the loader")
        return self.folder / name

    def _run(self, command: Sequence[str], task: str) -> None:
        done = self.toolchain.run(command, self.firmware, task)
        if done.returncode != 0:
            raise NpukitError(f"{self.toolchain.title} did not {task}: {done.stderr.strip()[:400]}")
