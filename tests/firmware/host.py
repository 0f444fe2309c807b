"""Firmware files compiled for the machine of the tests."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

from helpers import HOST_COMPILER
from npukit.data import data_folder

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def host_library(folder: Path, *sources: str | Path, includes: Sequence[str | Path] = ()) -> ctypes.CDLL:
    """A shared library of `sources`. Sources and header folders are named relative to the firmware's folder, or in
    full."""
    firmware = data_folder("firmware")
    library = folder / "firmware.so"
    folders = [f"-I{firmware / include}" for include in includes]
    options = [*folders, "-std=c11", "-O1", "-fPIC", "-shared", "-fno-builtin", "-fno-math-errno", *WARNINGS]
    command = [*HOST_COMPILER, *options, *(str(firmware / source) for source in sources), "-o", str(library)]
    subprocess.run([str(word) for word in command], check=True, timeout=120)
    return ctypes.CDLL(str(library))
