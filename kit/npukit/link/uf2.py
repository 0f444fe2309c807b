"""UF2 files, for boards whose flash appears as a drive (github.com/microsoft/uf2)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from npukit.project.images.elf import Elf

FAMILIES = {"rp2040": 0xE48B_FF56, "rp2350-arm-s": 0xE48B_FF59, "rp2350-riscv": 0xE48B_FF5A}
_BLOCK = struct.Struct("<8I476sI")
_FIRST, _SECOND, _LAST = 0x0A32_4655, 0x9E5D_5157, 0x0AB1_6F30
_NAMES_FAMILY = 0x2000
_BYTES = 256


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
