"""Zig's standard library as object files that gcc and zig cc both link."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from npukit.errors import NpukitError
from npukit.host.programs import find_zig, run

PACKAGE = "pip install ziglang==0.17.0"

_SECONDS = 300


def zig_cache() -> Path:
    """Zig's cache of compiled libraries, which exists after the first link."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(os.environ.get("ZIG_GLOBAL_CACHE_DIR") or Path(caches) / "zig") / "o"


def compile_zig(source: Path, folder: Path, target: Sequence[str]) -> Path:
    """The object file in `folder`: reproducible, and without debug information.

    Compiled in two steps. In functions marked `minsize` LLVM outlines code and calls through registers, so that no call
    graph remains to bound the stack (`project/images/stack.py`). The second step removes the mark.
    """
    zig = find_zig()
    if zig is None:
        raise NpukitError("the Python package ziglang was not found", tries=[PACKAGE, "npukit doctor"])
    module, output = f"{source.stem}.bc", folder / f"{source.stem}.o"
    library = ("-O", "ReleaseSmall", "-fstrip", "-fno-unwind-tables", "-fno-emit-bin", f"-femit-llvm-bc={module}")
    alone = (_ONE_JOB, "--cache-dir", str(folder / "zig-cache"))
    _run([zig, "build-obj", str(source), *target[:_TRIPLE_AND_CPU], *library, *alone], folder)
    _run([zig, "cc", *target, "-c", module, *_NOT_SMALLEST, *_ITS_FUNCTIONS, "-o", output.name], folder)
    return output


_TRIPLE_AND_CPU = 3
"""The first words of a target: `-target NAME -mcpu=NAME`. Only `zig cc` accepts the others."""
_ONE_JOB = "-j1"
"""Parallel jobs would order a module's functions by their completion."""
_NOT_SMALLEST = ("-Os", "-mllvm", "-force-remove-attribute=minsize")
_ITS_FUNCTIONS = ("-ffunction-sections", "-fno-unwind-tables")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = run(command, folder, seconds=_SECONDS)
    except OSError as error:
        raise NpukitError(f"zig did not compile: {error}", tries=["npukit doctor"]) from error
    if done.returncode != 0:
        raise NpukitError(f"zig did not compile: {done.stderr.strip()[:400]}", tries=[PACKAGE, "npukit doctor"])
