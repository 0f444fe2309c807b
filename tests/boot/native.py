"""The loader's C and a simulated flash, compiled for this machine: every request of the protocol, and power cuts."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

from helpers import HOST_COMPILER
from link.device_process import DEVICE as PIPES
from link.device_process import compile_here
from npukit.board.board import Board, Flash, load_board
from npukit.boot.loader import SIGNATURE
from npukit.boot.mesh_image import ImageProgram, Segment, pack_mesh_image
from npukit.boot.provision import COPIES, Policy, Takes
from npukit.data import data_folder
from npukit.project.render import render_board_header, render_flash_header
from npukit.project.zig import compile_zig

DEVICE = Path(__file__).parent / "device" / "flash_device.c"
POWER_CUT, NO_SLOT = -1, 0xFF
IDENTIFY, ERASE, WRITE, TRY, PROVISION, ABANDON = 0x20, 0x23, 0x24, 0x25, 0x26, 0x27
_OWN = ("state", "update", "image", "mesh_image", "provision", "counter", "requests")
HERE = ("-mcpu=baseline", "-fPIC")
_WARNINGS = ("-std=c11", "-O1", "-g", "-fPIC", "-shared")
_LONGEST_PAYLOAD = 1024
_POLICY_AT, _KEY_AT = 19, 24


class PowerCut(Exception):
    """Loss of power."""


def small_board() -> Board:
    """pe-mesh with a flash of few, small pages."""
    board = load_board("pe-mesh")
    assert board.flash is not None
    figures = {**board.flash.model_dump(), "page_bytes": 256, "loader_bytes": 2048, "slot_bytes": 2048}
    return board.model_copy(update={"flash": Flash(**figures)})


def tiny_mesh(board: Board, content: bytes, build: int = 1) -> bytes:
    """A mesh image of two programs on three PEs."""
    programs = (
        ImageProgram((Segment(0, content), Segment(0x8000, b"\x11" * 8)), (0,)),
        ImageProgram((Segment(0, content[:16]),), (1, 5)),
    )
    return pack_mesh_image(board, programs, (), bytes([build]) * 16)


def compile_device(board: Board, folder: Path) -> Path:
    """The loader and the simulated flash as a shared library for this machine."""
    library = folder / "device.so"
    command = [*HOST_COMPILER, *_WARNINGS, *_loader(board, folder), "-o", str(library)]
    subprocess.run(command, check=True, timeout=300)
    return library


def compile_loader(board: Board, folder: Path) -> Path:
    """The loader as a process with a pipe as its link: `link.device_process.Pipes`."""
    boot, rpc = data_folder("firmware") / "boot", data_folder("firmware") / "rpc"
    sources = [DEVICE.with_name("loader_process.c"), PIPES / "pipes.c", boot / "server.c", boot / "line.c"]
    everything = [f"-I{PIPES}", *map(str, [*sources, rpc / "frame.c"]), *_loader(board, folder)]
    return compile_here(["-std=c11", *everything], folder / "loader")


def _loader(board: Board, folder: Path) -> list[str]:
    """Compiler arguments for the loader and the simulated flash."""
    firmware = data_folder("firmware")
    render_board_header(board, folder / "board.h")
    render_flash_header(board, folder / "flash_board.h")
    sources = [
        DEVICE,
        *(firmware / "boot" / f"{name}.c" for name in _OWN),
        firmware / "rpc" / "crc32.c",
        signature_object(folder),
    ]
    includes = [folder, firmware / "boot", firmware / "rpc", firmware / "include"]
    return [*(f"-I{path}" for path in includes), *map(str, sources)]


def signature_object(folder: Path) -> Path:
    """The loader's zig code, compiled for this machine."""
    return compile_zig(data_folder("firmware") / SIGNATURE, folder, HERE)


@dataclass(frozen=True)
class Started:
    slot: int
    digest: bytes


class Device:
    """A board's flash, and the loader that uses it."""

    def __init__(self, library: Path, board: Board, record: bytes) -> None:
        assert board.flash is not None
        self.figures = board.flash
        self.library = ctypes.CDLL(str(library))
        self.library.device_flash.restype = ctypes.POINTER(ctypes.c_uint8)
        self.size = self.library.device_flash_bytes()
        assert self.size == board.flash.bytes
        loader = bytes(board.flash.once_offset) + (COPIES * record).ljust(board.flash.once_bytes, b"\xff")
        self.flash = loader.ljust(self.size, b"\xff")
        self.cut_power(0)

    @property
    def flash(self) -> bytes:
        return ctypes.string_at(self.library.device_flash(), self.size)

    @flash.setter
    def flash(self, content: bytes) -> None:
        ctypes.memmove(self.library.device_flash(), content, self.size)

    def cut_power(self, operation: int, chance: int = 0) -> None:
        """Cut the power at operation number `operation`, counted from here; 0: never."""
        self.library.device_cut_power(operation, chance)

    @property
    def operations(self) -> int:
        return self.library.device_operations()

    def request(self, kind: int, arguments: bytes) -> tuple[int, bytes]:
        payload, size = ctypes.create_string_buffer(_LONGEST_PAYLOAD), ctypes.c_uint32()
        status = self.library.device_request(kind, arguments, len(arguments), payload, ctypes.byref(size))
        if status == POWER_CUT:
            raise PowerCut
        return status, payload.raw[: size.value]

    def start(self) -> Started:
        """Start by power or RESTART: the chosen slot. An image on trial has not confirmed itself yet."""
        digest = ctypes.create_string_buffer(32)
        slot = self.library.device_start(digest)
        if slot == POWER_CUT:
            raise PowerCut
        return Started(slot, digest.raw)

    def verdict(self, slot: int) -> int:
        return self.library.device_check(slot)

    def place(self, slot: int, image: bytes) -> None:
        """Put bytes into a slot, as a factory would."""
        at, content = self.figures.slot_offset(slot), self.flash
        slot_bytes = image.ljust(self.figures.slot_bytes, b"\xff")
        self.flash = content[:at] + slot_bytes + content[at + len(slot_bytes) :]

    def write(self, slot: int, image: bytes) -> int:
        """Erase and write all pages that differ, as the host does. The first status other than 0, else 0."""
        page_bytes = self.figures.page_bytes
        for page in range(-(-len(image) // page_bytes)):
            wanted = image[page * page_bytes :][:page_bytes].ljust(page_bytes, b"\xff")
            place = self.figures.slot_offset(slot) + page * page_bytes
            if self.flash[place : place + page_bytes] == wanted:
                continue
            status = self._write_page(slot, page, wanted)
            if status:
                return status
        return 0

    def _write_page(self, slot: int, page: int, content: bytes) -> int:
        status, _ = self.request(ERASE, _words(slot, page))
        return status or self.request(WRITE, _words(slot, page * len(content)) + content)[0]

    def put_on_trial(self, slot: int, digest: bytes, may_be_older: bool = False) -> int:
        return self.request(TRY, _words(slot, may_be_older) + digest)[0]

    def confirm(self) -> bool:
        """Confirm the firmware, as firmware on trial does. True if it was on trial."""
        done = self.library.device_confirm()
        if done == POWER_CUT:
            raise PowerCut
        return bool(done)

    def provision(self, record: bytes) -> int:
        return self.request(PROVISION, record)[0]

    def takes(self) -> Takes:
        """Whose images the board accepts, as the board reports."""
        _, payload = self.request(IDENTIFY, b"")
        policy = Policy(payload[_POLICY_AT])
        return Takes(policy, payload[_KEY_AT : _KEY_AT + 32] if policy is Policy.KEY else None)

    @property
    def security_counter(self) -> int:
        return self.library.counter_read()


def _words(*values: int) -> bytes:
    return b"".join(int(value).to_bytes(4, "little") for value in values)
