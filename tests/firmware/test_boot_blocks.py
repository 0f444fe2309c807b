"""Blocks that a chip's boot code expects in an image, in images for boards on the market."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit.link.image_files import FAMILIES, uf2
from npukit.link.programmer import tool_command
from npukit.project.images.elf import Elf


def image(board: str, tmp_path: Path) -> Path:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "build", board, toolchain="zig")
    return built.images()[0].elf


def crc32(data: bytes) -> int:
    """The RP2040's ROM: polynomial 0x04C11DB7, highest bit first, nothing inverted at the end."""
    crc = 0xFFFF_FFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C1_1DB7 if crc >> 31 else 0)) & 0xFFFF_FFFF
    return crc


@pytest.mark.exhaustive
def test_the_second_stage_of_an_rp2040_has_its_crc_and_the_vector_table_behind_it(tmp_path: Path) -> None:
    elf = Elf(image("pico", tmp_path))
    start, data = elf.binary()
    assert (start, len(data) > 256) == (0x1000_0000, True)
    assert crc32(data[:252]) == struct.unpack_from("<I", data, 252)[0]
    assert elf.sections[".vectors"].address == 0x1000_0100 == struct.unpack_from("<I", data, 52)[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("board", "kind"), [("pico2", 0x1021_0142), ("pico2-rv", 0x1101_0142)])
def test_an_image_for_the_rp2350_says_for_which_cores_it_is(board: str, kind: int, tmp_path: Path) -> None:
    start, data = Elf(image(board, tmp_path)).binary()
    block = struct.pack("<5I", 0xFFFF_DED3, kind, 0x1FF, 0, 0xAB12_3579)
    assert start == 0x1000_0000
    at = data.find(block, 0, 4096)
    assert (at > 0, at % 4, data.count(block)) == (True, 0, 1)


@pytest.mark.exhaustive
def test_an_image_for_the_esp32_c3_starts_directly_and_is_written_in_two_pieces(tmp_path: Path) -> None:
    path = image("esp32c3", tmp_path)
    elf = Elf(path)
    (start, code), (constants, _) = sorted(elf.stretches(), reverse=True)
    assert code[:8] == bytes.fromhex("1d04dbae") * 2
    assert (start, elf.sections[".vectors"].address, constants) == (0x4200_0000, 0x4200_0008, 0x3C08_0000)
    assert elf.sections[".rodata"].address >= constants, "the core reads bytes only where flash is seen for data"
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "again", "esp32c3", toolchain="zig")
    programmer = built.board.programmer
    assert programmer is not None
    command = tool_command(programmer, [path])
    assert command[:4] == ("esptool", "--chip", "esp32c3", "write_flash")
    assert {command[4], command[6]} == {"0x0", "0x80000"}
    assert (path.parent / command[command.index("0x0") + 1]).read_bytes() == code


def test_a_uf2_file_has_every_byte_where_it_belongs() -> None:
    data = bytes(range(200)) * 3
    blocks = uf2([(0x1000_0080, data)], FAMILIES["rp2040"])
    assert len(blocks) == 3 * 512
    found = dict[int, int]()
    for start in range(0, len(blocks), 512):
        first, second, flags, address, size, number, count, family = struct.unpack_from("<8I", blocks, start)
        assert (first, second, flags) == (0x0A32_4655, 0x9E5D_5157, 0x2000)
        assert (size, number, count, family, address % 256) == (256, start // 512, 3, 0xE48B_FF56, 0)
        assert struct.unpack_from("<I", blocks, start + 508)[0] == 0x0AB1_6F30
        found |= dict(enumerate(blocks[start + 32 : start + 288], address))
    assert bytes(found[0x1000_0080 + i] for i in range(len(data))) == data
