"""Image files for other tools: Intel HEX, or UF2 for boards whose flash appears as a drive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.link.uf2 import FAMILIES, uf2
from npukit.project.images.elf import Elf
from npukit.writing import write_file

LINE = 32
DATA, END, UPPER_ADDRESS = 0, 1, 4
FLASH_OFFSET = 0x7F_FFFF
"""Mask of the address bits that count behind an ESP32-C3's window onto flash."""


def write_image(image: Path, board: Board, target: Path) -> Path:
    """Write an image's bytes by address, in the format of `target`'s suffix.

    For esptool, which does not use addresses of the core, addresses become offsets in the flash.
    """
    within = FLASH_OFFSET if board.programmer and board.programmer.tool == "esptool" else -1
    stretches = [(address & within, data) for address, data in Elf(image).stretches()]
    match target.suffix:
        case ".hex":
            write_file(target, intel_hex(stretches))
        case ".uf2":
            target.write_bytes(uf2(stretches, _family(board)))
        case _:
            raise NpukitError(f"{target} is no .hex and no .uf2", tries=["--to image.hex", "--to image.uf2"])
    return target


def intel_hex(stretches: list[tuple[int, bytes]]) -> str:
    """Intel HEX text: data lines of 32 bytes; the upper half of the address precedes each 64 KB."""
    return "".join(f":{each.hex().upper()}\n" for each in map(_summed, _records(stretches)))


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


def _summed(record: bytes) -> bytes:
    return record + bytes((-sum(record) & 0xFF,))


def _family(board: Board) -> int:
    target = board.programmer.target if board.programmer else ""
    if target not in FAMILIES:
        raise NpukitError(f"board {board.name} takes no UF2 files", tries=["--to image.hex"])
    return FAMILIES[target]
