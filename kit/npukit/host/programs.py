"""Programs that npukit starts: found by absolute path, in an environment that names no folder of a stranger.

Whatever lies in the current folder or in a build folder starts nothing: neither a program or a Python module of a
known name, nor a library or a header that a variable of the environment would lead to.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from npukit.host.budget import factor

FOLDERS = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "LOCALAPPDATA", "ZIG_GLOBAL_CACHE_DIR")
"""Variables that programs are given if their value is an absolute path: where to keep caches and scratch files."""
SEARCHED = ("PATH", "PYTHONPATH")
"""Variables of which programs are given the absolute paths: empty and relative ones mean the current folder."""
SYSTEM = ("SYSTEMROOT", "USERNAME")
"""Variables without which Windows starts nothing."""
FIXED = {"LC_ALL": "C", "PYTHONSAFEPATH": "1"}
"""English messages, which npukit reads; no Python of the current folder, in scripts that programs start in turn too."""

MOST_MEMORY = 4 << 30
"""Bytes of a program that works for npukit. zig cc takes 60 MB for a C file of a build."""
MOST_FILE = 1 << 30
"""Bytes of a file that such a program writes."""


def environment() -> dict[str, str]:
    """The environment of each program."""
    folders = {name: os.environ[name] for name in FOLDERS if os.path.isabs(os.environ.get(name, ""))}
    searched = {name: os.pathsep.join(_searched(os.environ.get(name, ""))) for name in SEARCHED}
    system = {name: os.environ[name] for name in SYSTEM if name in os.environ}
    return {**folders, **{name: paths for name, paths in searched.items() if paths}, **system, **FIXED}


def _searched(paths: str) -> Iterator[str]:
    return (path for path in paths.split(os.pathsep) if os.path.isabs(path))


def find_program(name: str, paths: str | None = None) -> str | None:
    """The absolute path of a program in `paths`, else in those of PATH, without the current folder."""
    names = [name, f"{name}.exe"] if sys.platform == "win32" else [name]
    folders = _searched(os.environ.get("PATH", os.defpath) if paths is None else paths)
    found = (Path(folder) / each for folder in folders for each in names)
    return next((str(each) for each in found if each.is_file() and os.access(each, os.X_OK)), None)


def find_zig() -> str | None:
    """The program that came with the Python package `ziglang`."""
    package = find_spec("ziglang")
    return find_program("zig", os.pathsep.join((package and package.submodule_search_locations) or []))


def start(command: Sequence[str | Path], folder: Path | None = None, **settings: Any) -> subprocess.Popen[bytes]:
    """A program, started in `folder`, else where it lies itself. An `OSError` if it is not there."""
    words = list(map(str, command))
    if not os.path.dirname(words[0]):
        program = find_program(words[0])
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
        words[0] = program
    return subprocess.Popen[bytes](words, cwd=folder or Path(words[0]).parent, env=environment(), **settings)


def run(
    command: Sequence[str | Path], folder: Path | None = None, *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """A program that has ended, with what it said, in bounds of time, memory and files.

    An `OSError` if it is not there, a `TimeoutError` if it took longer than `seconds`.
    """
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with start(command, folder, stdin=nothing, stdout=pipe, stderr=pipe) as process:
        bound(process.pid, MOST_MEMORY, seconds)
        try:
            said = process.communicate(timeout=seconds)
        except BaseException as stop:
            process.kill()
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            raise TimeoutError(f"it has not ended after {seconds:g} seconds") from stop
    if process.returncode == -getattr(signal, "SIGXCPU", 0):
        raise TimeoutError(f"it has not ended after {seconds:g} seconds of the processor")
    out, err = (each.decode(errors="replace") for each in said)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def bound(process: int, memory: int, seconds: float | None = None) -> None:
    """The kernel's bounds of a program, which what it starts has too: bytes of memory, seconds of the processor.

    Systems other than Linux set none from here.
    """
    if sys.platform != "linux":
        return
    import resource

    bounds = {resource.RLIMIT_DATA: int(memory * factor()), resource.RLIMIT_FSIZE: MOST_FILE, resource.RLIMIT_CORE: 0}
    if seconds is not None:
        bounds[resource.RLIMIT_CPU] = int(seconds) + 1
    for kind, most in bounds.items():
        with suppress(OSError, ValueError):  # it has ended already, or has tighter bounds
            resource.prlimit(process, kind, (most, most))
