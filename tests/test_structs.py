"""The sizes of the firmware's structures, which the kit counts with, are those of the compiled headers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from helpers import CHECKOUT, ZIG
from npukit.structs import stated_sizes

FIRMWARE = CHECKOUT / "firmware"
TARGET = ["-target", "thumb-freestanding-eabi", "-mcpu=cortex_m4"]


def compiled(source: str, headers: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A file compiled for a core of 32 bits with the headers of a folder."""
    (folder / "sizes.c").write_text(source)
    includes = [f"-I{each}" for each in (headers, *sorted(path for path in FIRMWARE.iterdir() if path.is_dir()))]
    command = [*ZIG, *TARGET, "-c", *includes, "-o", str(folder / "sizes.o"), str(folder / "sizes.c")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def headers_of(names: list[str]) -> list[str]:
    """The headers that state sizes of these structures."""
    texts = {header.name: header.read_text() for header in sorted(FIRMWARE.glob("*/*.h"))}
    return [header for header, text in texts.items() if any(f"sizeof(struct {name}) ==" in text for name in names)]


@pytest.mark.parametrize("wrong", [0, 4])
def test_each_size_is_the_compilers(wrong: int, tmp_path: Path) -> None:
    sizes = {name: size for name, size in stated_sizes().items() if name.startswith(("net_", "noc_", "mac_", "mla_"))}
    assert {"net_step", "net_layer", "net_state", "net_control", "net_record", "noc_descriptor"} <= set(sizes)
    lines = [f'#include "{header}"' for header in headers_of(list(sizes))]
    lines += [f'_Static_assert(sizeof(struct {name}) == {size + wrong}, "{name}");' for name, size in sizes.items()]
    assert (compiled("\n".join(lines) + "\n", tmp_path, tmp_path).returncode == 0) == (wrong == 0)


def test_a_header_whose_structure_grew_does_not_compile(tmp_path: Path) -> None:
    """A further member of each structure of net.h with a stated size."""
    text = (FIRMWARE / "include" / "net.h").read_text()
    for name in (name for name in stated_sizes() if name.startswith("net_")):
        grown = re.sub(rf"(struct {name} \{{\n)", r"\1    uint32_t further;\n", text)
        assert grown != text
        (tmp_path / "net.h").write_text(grown)
        assert "static assertion failed" in compiled('#include "net.h"\n', tmp_path, tmp_path).stderr, name
