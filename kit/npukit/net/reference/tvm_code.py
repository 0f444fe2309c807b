"""Ops that are C: the same C, compiled for this machine.

Equal to the device to the last bit: IEEE single precision, one operation at a time in the order of the C (no products
contracted with sums, nothing reordered), the same `firmware/libm` on both. A result that is no number is the one NaN
that Arm makes.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.net.c_function import check_code, declaration, math_functions, pointers
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode

FLAGS = (
    *("-std=c11", "-O1", "-w", "-fPIC", "-ffreestanding", "-fno-builtin", "-fno-strict-aliasing"),
    *("-ffp-contract=off", "-fno-math-errno"),
)
SECONDS = 300
NAN = np.uint32(0x7FC00000)


def tvm_code(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    output, attributes = net.tensor(op.output), op.attributes
    assert isinstance(attributes, TvmCode)
    activations = [value for name, value in zip(op.inputs, operands, strict=True) if name not in net.constants]
    result = np.empty((len(activations[0]), *output.shape), output.dtype)
    work = np.empty(attributes.work_bytes + 1, np.uint8)
    function = _library(_sources(net))[_source(net, op)]
    for case in range(len(result)):
        given = [
            np.ascontiguousarray(value if name in net.constants else value[case])
            for name, value in zip(op.inputs, operands, strict=True)
        ]
        function(*(array.ctypes.data_as(ctypes.c_void_p) for array in (*given, result[case : case + 1], work)))
    return _with_one_nan(result)


def _with_one_nan(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.float32:
        values.view(np.uint32)[np.isnan(values)] = NAN
    return values


def _sources(net: Net) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_source(net, op) for op in net.ops if isinstance(op.attributes, TvmCode)))


def _source(net: Net, op: Op) -> str:
    """The function without its name."""
    attributes = op.attributes
    assert isinstance(attributes, TvmCode)
    parameters = (declaration(each.dtype, each.name, written=each.written) for each in pointers(net, op))
    return f"({', '.join(parameters)})\n{{\n{attributes.code}}}\n"


@cache
def _library(sources: tuple[str, ...]) -> dict[str, Any]:
    """The functions, compiled together. The library stays loaded as long as the process."""
    for source in sources:
        check_code(source.partition("\n")[2])
    with tempfile.TemporaryDirectory(prefix="npukit-") as scratch:
        library = ctypes.CDLL(str(_compiled(sources, Path(scratch))))
    return {source: getattr(library, f"function_{index}") for index, source in enumerate(sources)}


def _compiled(sources: tuple[str, ...], folder: Path) -> Path:
    libm = data_folder("firmware") / "libm"
    head = '#include <stdbool.h>\n#include <stdint.h>\n#include "math.h"\n'
    functions = (f"void function_{index}{source}" for index, source in enumerate(sources))
    (folder / "functions.c").write_text(head + "\n".join(functions), encoding="utf-8")
    objects = _libm().objects if any(math_functions(source) for source in sources) else ()
    library = "functions.dll" if sys.platform == "win32" else "functions.so"
    _run(["-shared", "-Wl,-Bsymbolic", f"-I{libm}", "functions.c", *objects, "-o", library], folder)
    return folder / library


@dataclass(frozen=True)
class _Objects:
    """Compiled files, in a folder that goes with the process."""

    folder: tempfile.TemporaryDirectory[str]

    @property
    def objects(self) -> tuple[str, ...]:
        return tuple(str(path) for path in sorted(Path(self.folder.name).glob("*.o")))


@cache
def _libm() -> _Objects:
    folder, libm = tempfile.TemporaryDirectory(prefix="npukit-libm-"), data_folder("firmware") / "libm"
    _run([f"-I{libm}", "-c", *map(str, sorted(libm.glob("*.c")))], Path(folder.name))
    return _Objects(folder)


def _compiler() -> list[str]:
    """The system's C compiler, or the one that npukit brings."""
    system = shutil.which("cc")
    return [system] if system else [sys.executable, "-m", "ziglang", "cc"]


def _run(arguments: list[str], folder: Path) -> None:
    command = [*_compiler(), *FLAGS, *arguments]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise NpukitError(f"the reference of float ops cannot be compiled: {fault}", tries=["npukit doctor"]) from fault
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise NpukitError(f"the reference of float ops cannot be compiled: {said}", tries=["npukit doctor"])
