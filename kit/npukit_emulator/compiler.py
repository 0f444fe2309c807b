# SPDX-License-Identifier: GPL-2.0-only
"""The C core and the models of third parties, compiled at first use and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import unicorn

_SOURCES = Path(__file__).resolve().parent / "core"
_FLAGS = ("-std=c11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wconversion", "-Wshadow")
_THREADS = () if sys.platform == "win32" else ("-pthread",)
_SECONDS = 300


class CannotCompile(Exception):
    """The C core, or a model, could not be compiled. The text is the reason."""


def core_library() -> Path:
    """The compiled core. Compiled again whenever its sources, the compiler's flags or Unicorn change."""
    name = f"core-{_digest(_SOURCES.iterdir())}"
    headers = Path(str(unicorn.__file__)).resolve().parent / "include"
    return _library(name, sorted(_SOURCES.glob("*.c")), headers, "the emulator's core")


def device_library(model: Path) -> Path:
    """The compiled model of a third party's device: from a C file and its headers, or given as a library."""
    if model.suffix != ".c":
        return model
    beside = (path for path in model.parent.iterdir() if path.suffix in (".c", ".h"))
    name = f"{model.stem}-{_digest((*beside, _SOURCES / 'device.h'))}"
    return _library(name, [model], _SOURCES, f"the model {model.name}")


def _library(name: str, sources: Sequence[Path], headers: Path, subject: str) -> Path:
    file = f"{name}{'.dll' if sys.platform == 'win32' else '.so'}"
    for folder in _folders():
        if (folder / file).is_file():
            return folder / file
    for folder in _folders():
        if _writable(folder):
            _compile(folder / file, sources, headers, subject)
            return folder / file
    raise CannotCompile(f"no folder to keep {subject} in: tried {', '.join(map(str, _folders()))}")


def _digest(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256(f"{_FLAGS} {version('unicorn')} {sys.platform} {os.name}".encode())
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _folders() -> tuple[Path, ...]:
    """Folders for libraries, the preferred one first: the user's cache, and a scratch folder."""
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return cache / "npukit" / "emulator", Path(tempfile.gettempdir()) / f"npukit-emulator-{user}"


def _writable(folder: Path) -> bool:
    """True if only this user can write to the folder. A library that others may replace is not loaded."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return ours and os.access(folder, os.W_OK)


def _compile(library: Path, sources: Sequence[Path], headers: Path, subject: str) -> None:
    """Compile a library, whole or not at all: several workers may do this at once."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        command = [*_compiler(), *_FLAGS, *_THREADS, f"-I{headers}", *map(str, sources), "-o", str(made)]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if result.returncode != 0:
            raise CannotCompile(f"{command[0]} fails on {subject}: {result.stderr.strip()[:2000]}")
        os.replace(made, library)


def _compiler() -> list[str]:
    """The system's C compiler, otherwise npukit's own."""
    system = shutil.which("cc")
    return [system] if system and os.path.isabs(system) else [sys.executable, "-P", "-m", "ziglang", "cc"]
