"""Reader of npz files from untrusted sources: arrays of plain numbers and texts, limited in number and size."""

from __future__ import annotations

import zlib
from functools import partial
from math import prod
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from npukit.errors import NpukitError
from npukit.host.budget import BUILD
from npukit.host.parallel import apart

MOST_ARRAY_BYTES = 1 << 30
"""Limit on the bytes of all arrays in a file: a file of a few kilobytes may unpack to any size."""
MOST_ARRAYS = 1 << 16


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file by name. Raises a `ValueError` with the reason if the file is not one."""
    try:
        apart(partial(_check_contents, path), str(path), BUILD)
        with path.open("rb") as stream, ZipFile(stream) as archive:
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in archive.infolist()}
    except (OSError, BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, SyntaxError) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a user's npz file by name."""
    try:
        return read_arrays(path)
    except ValueError as error:
        raise NpukitError(
            f"{path} is not an npz file of arrays: {error}", tries=["numpy.savez(FILE, in0=...)"]
        ) from error


def _check_contents(path: Path) -> None:
    with path.open("rb") as stream, ZipFile(stream) as archive:
        members = archive.infolist()
    if len(members) > MOST_ARRAYS:
        raise ValueError(f"it has {len(members):,} arrays; npukit reads {MOST_ARRAYS:,}")
    size = sum(member.file_size for member in members)
    if size > MOST_ARRAY_BYTES:
        raise ValueError(f"its arrays have {size:,} bytes; npukit reads {MOST_ARRAY_BYTES:,}")


def _array(archive: ZipFile, member: ZipInfo) -> np.ndarray:
    with archive.open(member) as stream:
        if np.lib.format.read_magic(stream) not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"{member.filename} is of another format")
        stream.seek(0)
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds objects of Python's, not numbers")
        if any(size < 0 for size in shape) or prod(shape) * dtype.itemsize != member.file_size - stream.tell():
            raise ValueError(f"{member.filename} has not the bytes of {dtype} {list(shape)}")
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
