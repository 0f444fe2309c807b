"""Images as files for other tools."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.link import image_files
from npukit.link.image_files import intel_hex, write_image
from npukit.project.images.elf import Elf


def test_a_hex_file_has_lines_that_sum_to_zero_and_the_upper_address() -> None:
    lines = intel_hex([(0x0800_FFFE, bytes(range(4)))]).splitlines()
    assert lines == [":020000040800F2", ":02FFFE00000100", ":020000040801F1", ":020000000203F9", ":00000001FF"]
    assert all(sum(bytes.fromhex(line[1:])) % 256 == 0 for line in lines)


def test_an_image_is_what_objcopy_reads(tmp_path: Path) -> None:
    tool = shutil.which("arm-none-eabi-objcopy")
    if tool is None:
        pytest.skip("arm-none-eabi-objcopy is not here")
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", "stm32f4-disco")
    image = built.images()[0].elf
    written = write_image(image, built.board, tmp_path / "image.hex")
    subprocess.run([tool, "-I", "ihex", "-O", "binary", written, tmp_path / "image.bin"], check=True, timeout=60)
    first = Elf(image).stretches()[0]
    assert (tmp_path / "image.bin").read_bytes().startswith(first[1])
    with pytest.raises(NpukitError, match="stm32f4-disco takes no UF2 files"):
        write_image(image, built.board, tmp_path / "image.uf2")
    with pytest.raises(NpukitError, match=r"image.srec is no .hex and no .uf2"):
        write_image(image, built.board, tmp_path / "image.srec")


def test_for_esptool_addresses_are_places_in_the_flash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board, image = load_board("esp32c3"), tmp_path / "image.elf"
    monkeypatch.setattr(image_files, "Elf", lambda _: SimpleNamespace(stretches=lambda: [(0x4208_0000, b"\1")]))
    assert write_image(image, board, tmp_path / "image.hex").read_text().splitlines()[:2] == [
        ":020000040008F2",
        ":0100000001FE",
    ]
