"""Files and folders written whole or not at all, and what is said when that cannot be."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npukit.errors import NpukitError

FULL = (errno.ENOSPC, errno.EDQUOT)
_OTHERS = (
    errno.EEXIST,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EFBIG,
    errno.EIO,
)

NO_SPACE = ("no space left on device", "nospaceleft", "disk quota exceeded")
"""Messages of compilers about a full disk, in small letters."""


def cannot_write(output: Path, error: OSError) -> NpukitError:
    """The error for a place that cannot be written to."""
    if error.errno in FULL:
        return disk_full(output)
    return NpukitError(f"cannot write to {output}: {error.strerror or error}", tries=["another place to write to"])


def disk_full(output: Path) -> NpukitError:
    """The error for a full disk at a place, or at that for temporary files: which of them is not known."""
    return NpukitError(
        f"the disk is full: nothing was left at {output}",
        tries=[f"make room there, or in {tempfile.gettempdir()}", "another place with -o, and TMPDIR=FOLDER"],
    )


@contextmanager
def told_if_unwritable(output: Path) -> Iterator[None]:
    """A full disk, or a place that is read-only or has gone, leaves as an `NpukitError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*FULL, *_OTHERS):
            raise
        raise cannot_write(output, error) from error


@contextmanager
def new_file(output: Path) -> Iterator[Path]:
    """A file to fill, which becomes `output` when the block ends well and vanishes when it does not.

    Where `output` is a link, the file takes its place, and whatever it leads to stays as it is.
    """
    with told_if_unwritable(output):
        handle, name = tempfile.mkstemp(prefix=f".{output.name}.", suffix=output.suffix, dir=output.parent)
        os.close(handle)
        try:
            yield Path(name)
            os.chmod(name, 0o666 & ~_mask())
            os.replace(name, output)
        finally:
            with suppress(OSError):
                os.unlink(name)


def write_file(output: Path, data: str | bytes) -> None:
    """A text, or bytes, whole or not at all."""
    with new_file(output) as path:
        path.write_bytes(data.encode() if isinstance(data, str) else data)


def _mask() -> int:
    """The mask of this process's new files. There is no way to read it but to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
