"""The device's parsers under libFuzzer, with the address and undefined-behaviour sanitizers, on this machine."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

from boot.native import DEVICE as FLASH_DEVICE
from boot.native import signature_object, small_board, tiny_mesh
from npukit.boot.signed_image import Version, sign_image
from npukit.data import data_folder
from npukit.link.messages import (
    Describe,
    Hello,
    ReadCounters,
    ReadEvents,
    ReadLayers,
    ReadMemory,
    ReadOutput,
    ReadPes,
    Run,
    Table,
    WriteInput,
    WriteMemory,
    pack_request,
)
from npukit.link.runs import ReadRun, Start, Stop
from npukit.project.render import render_board_header, render_flash_header

FUZZERS = ("server", "loader")
_HERE = Path(__file__).parent / "device"
_FIRMWARE = data_folder("firmware")
_LOADER = (
    *("state", "update", "image", "mesh_image"),
    *("provision", "counter", "requests", "server", "line"),
)
_SANITIZERS = ("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
_FLAGS = ("-std=c11", "-O1", "-g", "-D_DEFAULT_SOURCE", *_SANITIZERS)
_SESSION = 0x1234


def clang_with_fuzzer() -> str | None:
    """Path of clang, or None if clang or its libFuzzer is missing."""
    clang = shutil.which("clang")
    if clang is None:
        return None
    asked = [clang, "-print-file-name=libclang_rt.fuzzer-x86_64.a", "--print-runtime-dir"]
    folder = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    return clang if any(Path(folder).glob("libclang_rt.fuzzer*")) else None


def build(name: str, clang: str, folder: Path) -> Path:
    """Compile the fuzzer `name`."""
    board = small_board()
    render_board_header(board, folder / "board.h")
    render_flash_header(board, folder / "flash_board.h")
    program = folder / name
    includes = [_HERE, folder, *(_FIRMWARE / part for part in ("include", "rpc", "boot"))]
    flags = [*_FLAGS, *(f"-I{path}" for path in includes)]
    subprocess.run([clang, *flags, *map(str, _sources(name, folder)), "-o", str(program)], check=True, timeout=300)
    return program


def _sources(name: str, folder: Path) -> list[Path]:
    rpc, own = _FIRMWARE / "rpc", [_HERE / "fuzz.c", _HERE / f"{name}.c"]
    if name == "server":
        return [*own, *sorted(rpc.glob("*.c"))]
    loader = [_FIRMWARE / "boot" / f"{part}.c" for part in _LOADER]
    return [*own, FLASH_DEVICE, *loader, rpc / "frame.c", rpc / "crc32.c", signature_object(folder)]


def fuzz(program: Path, corpus: Path, *limits: str) -> subprocess.CompletedProcess[str]:
    """Run a fuzzer from the seeds in `corpus`, and add new inputs there. A fault ends the run with a status and a
    report."""
    command = [str(program), str(corpus), "-timeout=20", "-max_len=4096", f"-artifact_prefix={corpus.parent}/", *limits]
    return subprocess.run(command, capture_output=True, text=True, errors="replace")


def seeds(name: str, corpus: Path) -> Path:
    """Write the first inputs: valid conversations and images."""
    corpus.mkdir()
    inputs = [_conversation(), b"\0" + bytes(random.Random(1).randbytes(64))]
    if name == "loader":
        mesh = tiny_mesh(small_board(), b"\x5a" * 64)
        image = sign_image(mesh, Version(1), None).data
        inputs = [b"\2" + mesh, b"\2" + image, _loader_conversation(image)]
    for number, content in enumerate(inputs):
        (corpus / str(number)).write_bytes(content)
    return corpus


def _conversation() -> bytes:
    requests = [
        *(Hello(), Describe(Table.INPUTS, 0), Describe(Table.LAYERS, 1), WriteInput(0, 3, b"abc"), Run(1, True, 1)),
        *(ReadOutput(0, 8, 2), ReadLayers(0), ReadMemory(0x2000_0010, 16), WriteMemory(0x2000_1000, b"abcd")),
        *(ReadCounters(), ReadPes(0), Run(2, False, 3), WriteInput(0, 0, b"\xe0"), Run(3, False, 1)),
        *(WriteInput(0, 0, b"\0"), Start(4, 0, 99), Stop(4), ReadRun(4), Start(4, 1, 99), ReadEvents(0), Stop(4)),
    ]
    return _packets([pack_request(request, number, _SESSION) for number, request in enumerate(requests)])


def _loader_conversation(image: bytes) -> bytes:
    """An update in raw request kinds and words."""
    words = lambda *values: struct.pack(f"<{len(values)}I", *values)  # noqa: E731
    pieces = [(at, image[at : at + 128]) for at in range(0, len(image), 128)]
    asked = [(0x20, b""), (0x21, words(0)), (0x22, words(0, 1)), *((0x23, words(0, page)) for page in range(4))]
    asked += [(0x24, words(0, at) + part.ljust(128, b"\xff")) for at, part in pieces]
    asked += [(0x25, words(0, 0) + image[-36:][:32]), (0x26, bytes(32)), (0x27, b""), (0x28, b"")]
    return _packets([struct.pack("<BBHHH", 1, kind, 7, 0xFFFF, _SESSION) + given for kind, given in asked])


def _packets(packets: list[bytes]) -> bytes:
    return b"\1" + b"".join(bytes([len(packet)]) + packet for packet in packets)
