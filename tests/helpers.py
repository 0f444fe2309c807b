"""Helpers shared by several test modules."""

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
"""Environment variable with the folder shared by the processes of one test run."""


def models() -> Path:
    """The folder of third-party models, or skip: third-party models are never part of the project."""
    folder = CHECKOUT.parent / "shared" / "models"
    if not folder.is_dir():
        pytest.skip("the third-party models (../shared/models) are not here")
    return folder


GCC = CORTEX_M4F.architecture.gcc
ZIG = [str(find_zig()), "cc"]
"""Zig's C compiler, a dependency of npukit and therefore present everywhere. Used by tests that need any compiler."""
TRAPS = ["-fsanitize=undefined", "-fsanitize-trap=undefined"]
"""Undefined behaviour ends the program. Without a trap zig compiles a library of sanitizers first, for 15 seconds."""
HOST_COMPILER = [found] if (found := shutil.which("cc")) else [*ZIG, *TRAPS]
"""C compiler for programs that run on this machine."""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Mark a test that runs programs: it is skipped with the names of the programs missing from the PATH."""
    return pytest.mark.skipif(bool(_missing(programs)), reason=_missing(programs))


def need(*programs: str) -> None:
    """Skip, with the names of the programs missing from the PATH."""
    if missing := _missing(programs):
        pytest.skip(missing)


def _missing(programs: Sequence[str]) -> str:
    return ", ".join(f"{program} is not here" for program in programs if shutil.which(program) is None)


def toolchain(name: str | None = None, core: CoreType = CORTEX_M4F) -> Toolchain:
    """The cross compiler `name`, or skip; without a name npukit's choice: GCC if present, else zig."""
    if name == "gcc":
        need(core.architecture.gcc)
    return find_toolchain(name, core)


def make_by_hand(project: Path, compiler: str | None = None) -> None:
    """Make the images of a project with its Makefile. Without `compiler`, npukit's choice compiles."""
    words = [f"TOOLCHAIN={toolchain(compiler).name}", f"ZIG={ZIG[0]}"]
    subprocess.run(
        ["make", "-j2", *words], cwd=project, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"}
    )


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Allow a single process at a time. Later processes find the files made by the first."""
    with lock.open("w") as file:
        flock(file, LOCK_EX)
        yield


def first_of(cases: Sequence[object], count: int = 1) -> list[Any]:
    """The values of a parameter. Values after the first `count` are marked exhaustive."""
    values = (case if isinstance(case, tuple) else (case,) for case in cases[count:])
    return [*cases[:count], *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in values)]


FRAMES = 400
"""Stack frames allowed beyond the caller. Enough for TVM and Python's own modules, too few to recurse along a graph."""


@contextmanager
def shallow() -> Iterator[None]:
    """Limit recursion to `FRAMES`: a recursion over hundreds of ops fails."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
