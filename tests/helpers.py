"""What several tests share."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

import pytest

from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.host.programs import find_zig
from npukit.project.toolchain import Toolchain, find_toolchain

CHECKOUT = Path(__file__).resolve().parents[1]

SHARED = "NPUKIT_TEST_BUILDS"
"""The variable with the folder in which the processes of one run of the tests keep what they share."""


def models() -> Path:
    """The folder of third-party models, or skip: they are never part of the project."""
    folder = CHECKOUT.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip("the third-party models (../shared/models) are not here")
    return folder


GCC = CORTEX_M4F.architecture.gcc
ZIG = [str(find_zig()), "cc"]
"""Zig's C compiler, which npukit brings: whatever needs a compiler and asks for none has this one everywhere."""
TRAPS = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
"""Undefined behaviour ends the program. Without a trap zig compiles a library of sanitizers first, for 15 seconds."""
HOST_COMPILER = [found] if (found := shutil.which("cc")) else [*ZIG, *TRAPS]
"""The C compiler for programs that run on this machine."""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark a test that runs programs: it skips with the name of each that is not on the PATH."""
    return pytest.mark.skipif(bool(_missing(programs)), reason=_missing(programs))


def need(*programs: str) -> None:
    """Skip, with the name of each program that is not on the PATH."""
    if missing := _missing(programs):
        pytest.skip(missing)


def _missing(programs: Sequence[str]) -> str:
    return ", ".join(f"{program} is not here" for program in programs if shutil.which(program) is None)


def toolchain(name: str | None = None, core: CoreType = CORTEX_M4F) -> Toolchain:
    """The cross compiler of that name, or skip; without a name npukit's own choice: GCC where it is, else zig."""
    if name == "gcc":
        need(core.architecture.gcc)
    return find_toolchain(name, core)


def make_by_hand(project: Path, compiler: str | None = None) -> None:
    """Make the images of a project by its own Makefile; without a name by the compiler that npukit took."""
    words = [f"TOOLCHAIN={toolchain(compiler).name}", f"ZIG={ZIG[0]}"]
    subprocess.run(
        ["make", "-j2", *words], cwd=project, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"}
    )


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """One process at a time; the others find what the first has made."""
    with lock.open("w") as file:
        flock(file, LOCK_EX)
        yield


def first_of(cases: Sequence[object], count: int = 1) -> list[Any]:
    """The values of a parameter; all but the first so many only where everything is run."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in values)]


FRAMES = 400
"""Deep enough for what TVM and Python's own modules need, and for no walk along a graph."""


@contextmanager
def shallow() -> Iterator[None]:
    """So few frames of Python's that nothing can recurse over hundreds of ops."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
