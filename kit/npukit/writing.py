"""Atomic writing of files and folders, and the errors for the user where writing fails."""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npukit.errors import NpukitError

FULL = (errno.ENOSPC, errno.EDQUOT)
_OTHERS = (
    *(errno.EEXIST, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR),
    *(errno.EISDIR, errno.EFBIG, errno.EIO),
)

NO_SPACE = ("no space left on device", "nospaceleft", "disk quota exceeded")
"""Compilers' messages about a full disk, in lower case."""


def cannot_write(output: Path, error: OSError) -> NpukitError:
    """The error for an output that cannot be written."""
    if error.errno in FULL:
        return disk_full(output)
    return NpukitError(f"cannot write to {output}: {error.strerror or error}", tries=["another place to write to"])


def disk_full(output: Path) -> NpukitError:
    """The error for a full disk. Either the output's disk or the disk of temporary files is full."""
    return NpukitError(
        f"the disk is full: nothing was left at {output}",
        tries=[f"make room there, or in {tempfile.gettempdir()}", "another place with -o, and TMPDIR=FOLDER"],
    )


@contextmanager
def told_if_unwritable(output: Path) -> Iterator[None]:
    """Turn an `OSError` (full disk, read-only or missing folder) into an `NpukitError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*FULL, *_OTHERS):
            raise
        raise cannot_write(output, error) from error


@contextmanager
def new_file(output: Path) -> Iterator[Path]:
    """A temporary file that replaces `output` when the block succeeds, and is removed when it fails. If `output` is a
    link, the file replaces the link; the link's target stays unchanged."""
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
    """Write a text or bytes to a file atomically."""
    with new_file(output) as path:
        path.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def new_folder(output: Path) -> Iterator[Path]:
    """A temporary folder that replaces `output` when the block succeeds, and is removed when it fails.

    An existing folder stays unchanged until the exchange, which is atomic where the system supports that. Leftovers of
    killed processes are removed first.
    """
    output = output.absolute()  # the current folder too needs a name
    with told_if_unwritable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{output.name}.npukit-"
        _sweep(output, prefix)
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=output.parent.resolve()))
    with _held(scratch):
        try:
            with _told_if_unwritable_in(scratch, output):
                yield scratch
                scratch.chmod(0o777 & ~_mask())
                _take_place(scratch, output)
        finally:
            _remove(scratch)


_BEFORE = ".before"
"""Suffix of the earlier folder's name during an exchange in two steps."""


def _sweep(output: Path, prefix: str) -> None:
    """Remove the scratch folders of ended processes. Restore an earlier folder if `output` is missing."""
    for left in output.parent.glob(glob.escape(prefix) + "*"):
        if left.name.endswith(_BEFORE) and not output.exists():
            left.rename(output)
            continue
        with _held(left) as free:
            if free:
                _remove(left)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Lock a folder until the block or this process ends. False if another process has the lock, or none can be."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        import fcntl  # unavailable on some systems

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _told_if_unwritable_in(scratch: Path, output: Path) -> Iterator[None]:
    """Report a failure to write in `scratch` as a failure of `output`: the user does not know the scratch folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL and not str(error.filename or "").startswith(str(scratch)):
            raise
        raise cannot_write(output, error) from error


def _take_place(scratch: Path, output: Path) -> None:
    """Rename the scratch folder to `output`. An earlier folder gets the scratch folder's name."""
    if not output.is_symlink() and not output.exists():
        scratch.rename(output)
    elif not exchanged(scratch, output):
        before = scratch.with_name(scratch.name + _BEFORE)
        output.rename(before)
        try:
            scratch.rename(output)
        except OSError:
            before.rename(output)
            raise
        _remove(before)


_HERE, _EXCHANGE, _SWAP = -100, 2, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS."""


def exchanged(one: Path, other: Path) -> bool:
    """Exchange the names of two files or folders atomically. False if the system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            return ctypes.CDLL(None).renamex_np(*names, _SWAP) == 0
        return ctypes.CDLL(None).renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0
    except (AttributeError, OSError, TypeError):
        return False


def _mask() -> int:
    """The mask of this process's new files. The only way to read the mask is to set it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
