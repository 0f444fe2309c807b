"""Object files shared by the builds of one test run: equal inputs are compiled once."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from unittest import mock

from npukit.boot import loader
from npukit.project import compile as images
from npukit.project import zig
from npukit.project.files import Tuning, Unit


def share_objects(folder: Path) -> None:
    """Let builds and loaders of this process share their object files in `folder`."""
    folder.mkdir(exist_ok=True)
    images._Build._compile = _sharing_images(folder)  # pyright: ignore[reportAttributeAccessIssue]
    loader._Build._compile = _sharing_loaders(folder)  # pyright: ignore[reportAttributeAccessIssue]
    loader.compile_zig = _sharing_zig(folder)  # pyright: ignore[reportAttributeAccessIssue]


@contextmanager
def compiled_anew() -> Iterator[None]:
    """Bypass the shared objects, for tests of the compilers' output."""
    with mock.patch.object(sys.modules[__name__], "_sharing", False):
        yield


_sharing = True


def _sharing_images(kept: Path) -> Callable[[Any, tuple[Unit, PurePosixPath | None]], None]:
    compile_one = images._Build._compile

    def compile_or_take(build: Any, job: tuple[Unit, PurePosixPath | None]) -> None:
        (unit, own), project = job, build.project.folder
        includes = [*build.project.include_folders(unit.cpu), *([own] if own else [])]
        command = build.command(unit, own, Path("object.o"))
        folders = [project / each for each in (unit.source.parent, *includes)]
        told = [build.toolchain.title, *_without(project, command)]
        _keep(
            kept,
            told,
            _read(project / unit.source, folders),
            build.scratch / unit.object,
            partial(compile_one, build, job),
        )

    return compile_or_take


def _sharing_loaders(kept: Path) -> Callable[[Any, PurePosixPath, Tuning], Path]:
    compile_one = loader._Build._compile

    def compile_or_take(build: Any, source: PurePosixPath, tuning: Tuning) -> Path:
        output = build.folder / source.name.replace(".c", ".o")
        folders = [build.folder, *(build.firmware / name for name in loader._FOLDERS)]
        command = build.toolchain.compile_command(build.core, source, tuning, (), build.firmware, Path("object.o"))
        told = [build.toolchain.title, *command]
        _keep(kept, told, _read(build.firmware / source, folders), output, partial(compile_one, build, source, tuning))
        return output

    return compile_or_take


def _sharing_zig(kept: Path) -> Callable[[Path, Path, Sequence[str]], Path]:
    def compile_or_take(source: Path, folder: Path, target: Sequence[str]) -> Path:
        output = folder / f"{source.stem}.o"
        _keep(kept, [str(zig.find_zig()), *target], [source], output, partial(zig.compile_zig, source, folder, target))
        return output

    return compile_or_take


def _without(project: Path, command: Sequence[str]) -> list[str]:
    """The command without the project's path and without include folders, whose headers `_read` covers."""
    return [word.replace(str(project), ".") for word in command if not word.startswith("-I")]


def _read(source: Path, folders: Sequence[Path]) -> list[Path]:
    """All files that the compiler may read: every `#include`, under any condition, from any of the folders."""
    found, waiting = dict[Path, None](), [source]
    while waiting:
        file = waiting.pop()
        found[file] = None
        names = [name.decode() for name in _INCLUDE.findall(file.read_bytes())]
        paths = (folder / name for name in names for folder in (file.parent, *folders))
        waiting += (path for path in dict.fromkeys(paths) if path not in found and path.is_file())
    return list(found)


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+["<]([^">]+)[">]', re.MULTILINE)


def _keep(kept: Path, told: Iterable[str], read: Iterable[Path], output: Path, make: Callable[[], object]) -> None:
    digest = hashlib.sha256("\0".join(told).encode())
    for file in read:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    shared = kept / digest.hexdigest()
    if _sharing and shared.is_file():
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shared, output)
        return
    make()
    with tempfile.NamedTemporaryFile(dir=kept, delete=False) as file:
        file.write(output.read_bytes())
    Path(file.name).replace(shared)
