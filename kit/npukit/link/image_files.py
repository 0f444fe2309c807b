"""Image files for other tools: Intel HEX, and UF2 (github.com/microsoft/uf2) for boards with a drive."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.project.images.elf import Elf
from npukit.writing import write_file

LINE = 32
DATA, END, UPPER_ADDRESS = 0, 1, 4
FLASH_OFFSET = 0x7F_FFFF
"""Mask of the address bits that count behind an ESP32-C3's window onto flash."""

FAMILIES = {"rp2040": 0xE48B_FF56, "rp2350-arm-s": 0xE48B_FF59, "rp2350-riscv": 0xE48B_FF5A}
_BLOCK = struct.Struct("<8I476sI")
_FIRST, _SECOND, _LAST = 0x0A32_4655, 0x9E5D_5157, 0x0AB1_6F30
_NAMES_FAMILY = 0x2000
_BYTES = 256


def write_image(image: Path, board: Board, target: Path) -> Path:
    """Write an image's bytes by address, in the format of `target`'s suffix. For esptool, which does not use addresses
    of the core, addresses become offsets in the flash."""
    within = FLASH_OFFSET if board.programmer and board.programmer.tool == "esptool" else -1
    stretches = [(address & within, data) for address, data in Elf(image).stretches()]
    match target.suffix:
        case ".hex":
            write_file(target, intel_hex(stretches))
        case ".uf2":
            family = board.programmer.target if board.programmer else ""
            if family not in FAMILIES:
                raise NpukitError(f"board {board.name} takes no UF2 files", tries=["--to image.hex"])
            target.write_bytes(uf2(stretches, FAMILIES[family]))
        case _:
            raise NpukitError(f"{target} is no .hex and no .uf2", tries=["--to image.hex", "--to image.uf2"])
    return target


def intel_hex(stretches: list[tuple[int, bytes]]) -> str:
    """Intel HEX text: data lines of 32 bytes; the upper half of the address precedes each 64 KB."""
    summed = (record + bytes((-sum(record) & 0xFF,)) for record in _records(stretches))
    return "".join(f":{each.hex().upper()}\n" for each in summed)


def _records(stretches: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """Records without checksum: byte count, address, kind, data."""
    upper = -1
    for start, data in stretches:
        at = start
        while at < start + len(data):
            if at >> 16 != upper:
                upper = at >> 16
                yield bytes((2, 0, 0, UPPER_ADDRESS)) + upper.to_bytes(2, "big")
            stop = min(at + LINE, start + len(data), (upper + 1) << 16)
            piece = data[at - start : stop - start]
            yield bytes((len(piece),)) + (at & 0xFFFF).to_bytes(2, "big") + bytes((DATA,)) + piece
            at = stop
    yield bytes((0, 0, 0, END))


def write_uf2(images: Sequence[Path], family: str) -> Path:
    """Write one UF2 file of all images, beside the first image."""
    path = images[0].with_suffix(".uf2")
    path.write_bytes(uf2([stretch for image in images for stretch in Elf(image).stretches()], FAMILIES[family]))
    return path


def uf2(stretches: list[tuple[int, bytes]], family: int) -> bytes:
    """UF2 file of bytes by address, in blocks of 256 at multiples of 256."""
    pages = dict[int, bytearray]()
    for address, data in stretches:
        for at, byte in enumerate(data, address):
            pages.setdefault(at // _BYTES * _BYTES, bytearray(_BYTES))[at % _BYTES] = byte
    blocks = sorted(pages.items())
    return b"".join(
        _BLOCK.pack(_FIRST, _SECOND, _NAMES_FAMILY, at, _BYTES, number, len(blocks), family, bytes(data), _LAST)
        for number, (at, data) in enumerate(blocks)
    )
