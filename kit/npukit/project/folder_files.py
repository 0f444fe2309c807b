"""The files of a build folder, which anybody may have made: all in it, plain, of a size that can be read."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from npukit.errors import NpukitError

MOST_BYTES = 2 << 30
"""The most bytes of all files. A build of the digits network for two chips of 152 PEs has 7.3 MB."""
MOST_TEXT = 256 << 20
"""The most bytes of a file that is parsed as a whole."""

_AGAIN = ("build again",)


def differing_files(
    folder: Path, digests: Mapping[str, str], needed: Iterable[str], known: Iterable[str]
) -> Iterator[str]:
    """The files that differ from what the build left there. An error if they are none that a build has.

    `needed` must be among them, and of `known` files, which are read where they are there, none may be there besides.
    """
    missing = [name for name in needed if name not in digests]
    if missing:
        raise _wrong(folder / missing[0], "is not among the files of the build")
    stray = [name for name in known if name not in digests and (folder / name).exists()]
    if stray:
        raise _wrong(folder / stray[0], "was put there after the build")
    sizes = {name: plain_size(folder, name) for name in digests}
    if sum(size or 0 for size in sizes.values()) > MOST_BYTES:
        raise NpukitError(f"the files of {folder} have more than the {MOST_BYTES:,} bytes that npukit reads")
    for name, digest in digests.items():
        if sizes[name] is None or file_digest(folder / name) != digest:
            yield name


def plain_size(folder: Path, name: str) -> int | None:
    """The bytes of a file in the folder, if it is there; an error if it is none, or leads out of the folder."""
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise _wrong(folder / name, "leads out of the build folder")
    path = folder
    for part in name.split("/"):
        path = path / part
        if path.is_symlink():
            raise _wrong(path, "is a link, which a build has none of")
    if not path.exists():
        return None
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise _wrong(path, "is no plain file")
    return found.st_size


def read_text(path: Path, most_bytes: int = MOST_TEXT) -> str:
    """A text that is parsed as a whole. A `ValueError` if it is none, or too long."""
    if path.stat().st_size > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return path.read_bytes().decode()


def file_digest(path: Path) -> str:
    """SHA-256, in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _wrong(path: Path, why: str) -> NpukitError:
    return NpukitError(f"{path} {why}", tries=_AGAIN)
