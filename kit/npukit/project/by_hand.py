"""A project edited by hand: the changed files, and the images from the project's own `make`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from npukit.errors import NpukitError

PROJECT = PurePosixPath("project")
_MADE = PROJECT / "build"
STAMP = _MADE / "made"
"""Touched by every successful `make`."""


def in_project(name: str) -> bool:
    """True for a build folder's files that may be edited by hand."""
    path = PurePosixPath(name)
    return path.is_relative_to(PROJECT) and not path.is_relative_to(_MADE)


def made_of(image: str) -> str:
    """The file written by `make` in place of a file in `images/`."""
    return (_MADE / PurePosixPath(image).name).as_posix()


def changed_files(folder: Path, changed: Iterable[str], digests: Mapping[str, str]) -> tuple[str, ...]:
    """`changed`, and the project's files missing from the manifest."""
    files = (path.relative_to(folder).as_posix() for path in (folder / PROJECT).rglob("*") if path.is_file())
    return tuple(sorted({*changed, *(name for name in files if in_project(name) and name not in digests)}))


def is_made(folder: Path, changed: Iterable[str], images: Iterable[str]) -> bool:
    """True if `make` has built images of all changes. An error if a change is newer than the images."""
    made = (folder / STAMP).stat().st_mtime_ns if (folder / STAMP).is_file() else None
    for name in changed:
        if made is None or ((folder / name).is_file() and (folder / name).stat().st_mtime_ns > made):
            raise NpukitError(f"{folder / name} was changed, and no images were made of that", tries=[making(folder)])
    for name in map(made_of, images if made else ()):
        if not (folder / name).is_file():
            raise NpukitError(f"{folder / name} is missing", tries=[making(folder)])
    return made is not None


def making(folder: Path) -> str:
    """The command that builds the images."""
    return f"make -C {folder / PROJECT}"
