"""The C server compiled for the Cortex-M4: no warnings, and small."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from helpers import need
from link.device_process import GCC_M4, WARNINGS, ZIG_M4, includes, server_sources
from npukit.data import data_folder


def compile_server(compiler: list[str], folder: Path) -> list[Path]:
    objects, libc = [], f"-I{data_folder('firmware') / 'libc'}"
    for source in server_sources():
        objects.append(folder / f"{source.stem}.o")
        command = [*compiler, "-O2", *WARNINGS, *includes(), libc, "-c", str(source), "-o", str(objects[-1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
    return objects


def allocated_bytes(path: Path, kind: str) -> int:
    """Bytes of the file's sections of a kind that occupy memory."""
    with path.open("rb") as file:
        sections = ELFFile(file).iter_sections(kind)
        return sum(section["sh_size"] for section in sections if section["sh_flags"] & 2 and ".ARM" not in section.name)


@pytest.mark.parametrize("compiler", [ZIG_M4, GCC_M4], ids=["zig", "gcc"])
def test_it_is_free_of_warnings_and_small(compiler: list[str], tmp_path: Path) -> None:
    need(compiler[0])
    objects = compile_server(compiler, tmp_path)
    # Includes rpc_log() and the code for builds that trace. The linker omits both unless called.
    assert 0 < sum(allocated_bytes(path, "SHT_PROGBITS") for path in objects) < 10240
    assert 532 <= sum(allocated_bytes(path, "SHT_NOBITS") for path in objects) < 700
