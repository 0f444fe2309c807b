"""Programs started by npukit: found by absolute path, with an environment free of strangers' folders.

Files in the current folder or a build folder must not start anything: no program or Python module by a known name, no
library or header through an environment variable.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from npukit.host.budget import factor

FOLDERS = ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "LOCALAPPDATA", "ZIG_GLOBAL_CACHE_DIR")
"""Variables for places of caches and scratch files, passed to programs if their value is an absolute path."""
PATH_LISTS = ("PATH", "PYTHONPATH")
"""Variables with lists of paths. Programs receive the absolute ones: the others mean the current folder."""
SYSTEM = ("SYSTEMROOT", "USERNAME")
"""Variables needed by Windows to start a program."""
FIXED_ENVIRONMENT = {"LC_ALL": "C", "PYTHONSAFEPATH": "1"}
"""English messages, which npukit parses; no Python modules of the current folder, also in scripts started in turn."""

MOST_MEMORY = 4 << 30
"""Bytes of memory of a program. zig cc takes 60 MB for a C file of a build."""
MOST_PROGRAM_FILE = 1 << 30
"""Bytes of a file written by a program."""


def environment() -> dict[str, str]:
    """Environment of each program."""
    folders = {name: os.environ[name] for name in FOLDERS if os.path.isabs(os.environ.get(name, ""))}
    searched = {name: os.pathsep.join(_searched(os.environ.get(name, ""))) for name in PATH_LISTS}
    system = {name: os.environ[name] for name in SYSTEM if name in os.environ}
    return {**folders, **{name: paths for name, paths in searched.items() if paths}, **system, **FIXED_ENVIRONMENT}


def _searched(paths: str) -> Iterator[str]:
    return (path for path in paths.split(os.pathsep) if os.path.isabs(path))


def find_program(name: str, paths: str | None = None) -> str | None:
    """Absolute path of a program in `paths`, else on PATH; never in the current folder."""
    names = [name, f"{name}.exe"] if sys.platform == "win32" else [name]
    folders = _searched(os.environ.get("PATH", os.defpath) if paths is None else paths)
    found = (Path(folder) / each for folder in folders for each in names)
    return next((str(each) for each in found if each.is_file() and os.access(each, os.X_OK)), None)


def find_zig() -> str | None:
    """The zig program of the Python package `ziglang`."""
    package = find_spec("ziglang")
    return find_program("zig", os.pathsep.join((package and package.submodule_search_locations) or []))


def start(
    command: Sequence[str | Path],
    folder: Path | None = None,
    *,
    memory: int | None = None,
    seconds: float | None = None,
    **settings: Any,
) -> subprocess.Popen[bytes]:
    """Start a program in `folder`, else in the program's own folder. `OSError` for a missing program.

    `memory`: limit in bytes for the program, and for each program started in turn. `seconds`: limit of processor time.
    The kernel enforces both, on Linux.
    """
    words = list(map(str, command))
    if not os.path.dirname(words[0]):
        program = find_program(words[0])
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), words[0])
        words[0] = program
    folder = folder or Path(words[0]).parent
    if memory is not None and sys.platform == "linux":
        program = folder / words[0]  # the kernel looks for a relative path from there
        if not os.access(program, os.X_OK):
            number = errno.EACCES if program.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number), words[0])
        words = ["/bin/sh", "-c", _bounded(int(memory * factor()), seconds), *words]
    return subprocess.Popen[bytes](words, cwd=folder, env=environment(), **settings)


def _bounded(memory: int, seconds: float | None) -> str:
    """Shell line that sets limits and then becomes the program: the limits hold for every child from the beginning.
    Tighter limits of the system stay."""
    bounds = {"-c": 0, "-f": MOST_PROGRAM_FILE // 512, "-d": memory >> 10}
    if seconds is not None:
        bounds["-t"] = int(seconds) + 1
    return "".join(f"ulimit {kind} {most} 2>/dev/null; " for kind, most in bounds.items()) + 'exec "$0" "$@"'


def run(
    command: Sequence[str | Path], folder: Path | None = None, *, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to the end, within limits of time, memory and files. Returns the output. `OSError` for a missing
    program, `TimeoutError` after `seconds`."""
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    within = {"memory": MOST_MEMORY, "seconds": seconds}
    with start(command, folder, stdin=nothing, stdout=pipe, stderr=pipe, **within) as process:
        try:
            streams = process.communicate(timeout=seconds)
        except BaseException as stop:
            process.kill()
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            raise TimeoutError(f"it has not ended after {seconds:g} seconds") from stop
    if process.returncode == -getattr(signal, "SIGXCPU", 0):
        raise TimeoutError(f"it has not ended after {seconds:g} seconds of the processor")
    out, err = (each.decode(errors="replace") for each in streams)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
