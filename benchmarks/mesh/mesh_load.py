"""From power-on to firmware: the loader's time for a mesh, measured in the emulated board's time, and predicted.

    python benchmarks/mesh/mesh_load.py [--boards pe-mesh pe-mesh-152 pe-mesh-7296] [--only-predict BOARD]

The signed image has one program of 64 KB for all PEs, and own data for each PE: as many bytes as fit in the slot, 8 KB
at most. Boards of `--only-predict` are not emulated.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kit"))

from npukit.board.board import Board, load_board
from npukit.boot.keys import public_bytes
from npukit.boot.load_time import load_cycles
from npukit.boot.loader import flash_of, loader_area
from npukit.boot.mesh_image import ImageProgram, Segment, pack_mesh_image
from npukit.boot.provision import takes_of
from npukit.boot.signed_image import Version, sign_image
from npukit.emulator.flashed import FlashedBoard
from npukit.project.images.image import Overlay

_VECTORS = struct.pack("<II", 0x2_0000, 0x41) + bytes(56)
_LOOP_FOR_EVER = bytes.fromhex("fee7fee7")
_PROGRAM_BYTES, _MOST_OWN_BYTES, _OWN_ADDRESS = 64 << 10, 8 << 10, 0x1_C000
_STEP_CYCLES = 20_000
_GIVE_UP_CYCLES = 1_000_000_000


def contents(board: Board) -> tuple[ImageProgram, list[Overlay]]:
    random = np.random.default_rng(1)
    code = _VECTORS + _LOOP_FOR_EVER
    pes = tuple(range(board.pe_count))
    program = ImageProgram((Segment(0, code + random.bytes(_PROGRAM_BYTES - len(code))),), pes)
    room = flash_of(board).slot_bytes - _PROGRAM_BYTES - 4096 - 32 * len(pes)
    own = min(_MOST_OWN_BYTES, room // len(pes)) // 16 * 16
    return program, [Overlay(pe, _OWN_ADDRESS, random.bytes(own)) for pe in pes] if own > 0 else []


def measure(board: Board, loader: bytes, image: bytes, file: Path) -> int:
    """Cycles until the last PE runs."""
    file.write_bytes(flash_with(board, loader, image))
    with closing(FlashedBoard(board, file)) as running:
        while running.counters(board.pe_count - 1).instructions == 0:
            running.run(_STEP_CYCLES)
            if running.time() > _GIVE_UP_CYCLES:
                raise SystemExit(f"{board.name} does not start")
        return running.time()


def flash_with(board: Board, loader: bytes, image: bytes) -> bytes:
    """The contents of a flash whose first slot holds the image, confirmed."""
    flash = flash_of(board)
    state = struct.pack("<4sIBBBB", b"NPST", 1, 0, 0xFF, 0, 0)
    content = bytearray(loader.ljust(flash.bytes, b"\xff"))
    for at, part in ((flash.state_offset, state + struct.pack("<I", zlib.crc32(state))), (flash.slot_offset(0), image)):
        content[at : at + len(part)] = part
    return bytes(content)


def report(name: str, emulated: bool, key: Ed25519PrivateKey, folder: Path) -> None:
    board = load_board(name)
    program, overlays = contents(board)
    image = sign_image(pack_mesh_image(board, (program,), overlays, bytes(16)), Version(1), key).data
    clock = board.core.clock_hz
    predicted = load_cycles(board, (program,), overlays, len(image), signed=True) / clock
    measured = "not emulated"
    if emulated:
        loader = loader_area(board, takes_of(public_bytes(key)).record())
        measured = f"{1e3 * measure(board, loader, image, folder / name) / clock:.1f} ms"
    own = len(overlays[0].data) if overlays else 0
    print(f"| {name} | {board.pe_count} | {own:,} | {len(image):,} | {measured} | {1e3 * predicted:.1f} ms |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", nargs="*", default=["pe-mesh", "pe-mesh-152", "pe-mesh-7296"])
    parser.add_argument("--only-predict", nargs="*", default=[])
    given = parser.parse_args(arguments)
    print("| board | PEs | own bytes a PE | image | measured | predicted |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.boards:
            report(name, name not in given.only_predict, Ed25519PrivateKey.generate(), Path(folder))


if __name__ == "__main__":
    main()
