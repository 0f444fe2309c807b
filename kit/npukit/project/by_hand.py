"""A project changed by hand: which of its files, and the images that its own `make` made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from npukit.errors import NpukitError

PROJECT = PurePosixPath("project")
MADE = PROJECT / "build"
STAMP = MADE / "made"
"""Touched by every `make` that ends well."""


def in_project(name: str) -> bool:
    """True for a file of a build folder that a person may change, and make images of."""
    path = PurePosixPath(name)
    return path.is_relative_to(PROJECT) and not path.is_relative_to(MADE)


def made_of(image: str) -> str:
    """The file that `make` makes in place of one of `images/`."""
    return (MADE / PurePosixPath(image).name).as_posix()


def changed_files(folder: Path, changed: Iterable[str], digests: Mapping[str, str]) -> tuple[str, ...]:
    """`changed`, and the files of the project that the build did not leave there."""
    files = (path.relative_to(folder).as_posix() for path in (folder / PROJECT).rglob("*") if path.is_file())
    return tuple(sorted({*changed, *(name for name in files if in_project(name) and name not in digests)}))


def is_made(folder: Path, changed: Iterable[str], images: Iterable[str]) -> bool:
    """True if `make` has made the images of all that was changed. An error if it was not after the last change."""
    made = (folder / STAMP).stat().st_mtime_ns if (folder / STAMP).is_file() else None
    for name in changed:
        if made is None or ((folder / name).is_file() and (folder / name).stat().st_mtime_ns > made):
            raise NpukitError(f"{folder / name} was changed, and no images were made of that", tries=[making(folder)])
    for name in map(made_of, images if made else ()):
        if not (folder / name).is_file():
            raise NpukitError(f"{folder / name} is missing", tries=[making(folder)])
    return made is not None


def making(folder: Path) -> str:
    """The command that makes the images."""
    return f"make -C {folder / PROJECT}"
