"""Safe access to the files of an untrusted build folder: plain files inside the folder, of limited size."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from npukit.errors import NpukitError

MOST_FOLDER_BYTES = 2 << 30
"""Limit on the bytes of all files. A build of the digits network for two chips of 152 PEs has 7.3 MB."""
MOST_TEXT = 256 << 20
"""Limit on the bytes of a file that is parsed as a whole."""

_AGAIN = ("build again",)


def differing_files(
    folder: Path, digests: Mapping[str, str], needed: Iterable[str], known: Iterable[str]
) -> Iterator[str]:
    """The files that differ from the manifest's `digests`. Links, special files, and files outside the folder are
    errors.

    `needed`: files that must be listed. `known`: optional files that npukit reads. If unlisted, they must not exist.
    """
    missing = [name for name in needed if name not in digests]
    if missing:
        raise _wrong(folder / missing[0], "is not among the files of the build")
    stray = [name for name in known if name not in digests and (folder / name).exists()]
    if stray:
        raise _wrong(folder / stray[0], "was put there after the build")
    sizes = {name: plain_size(folder, name) for name in digests}
    if sum(size or 0 for size in sizes.values()) > MOST_FOLDER_BYTES:
        raise NpukitError(f"the files of {folder} have more than the {MOST_FOLDER_BYTES:,} bytes that npukit reads")
    for name, digest in digests.items():
        if sizes[name] is None or file_digest(folder / name) != digest:
            yield name


def plain_size(folder: Path, name: str) -> int | None:
    """The bytes of a file in the folder, or None if missing. An error for links and paths out of the folder."""
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
    """A text to parse as a whole. Raises a `ValueError` if the file is too long or not UTF-8."""
    if path.stat().st_size > most_bytes:
        raise ValueError(f"it has more than {most_bytes:,} bytes")
    return path.read_bytes().decode()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _wrong(path: Path, why: str) -> NpukitError:
    return NpukitError(f"{path} {why}", tries=_AGAIN)
