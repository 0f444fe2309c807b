"""A dump of a build's intermediate results: `npukit build --dump FOLDER`.

Without --dump nothing is written. Subprocesses of a build write into the same folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from npukit.errors import NpukitError

CANDIDATES = "candidates.txt"
_FOLDER: ContextVar[Path | None] = ContextVar("dump", default=None)


@contextmanager
def dumping(folder: Path | None) -> Iterator[None]:
    """Direct dumps to the folder, new or empty, inside the context. None disables dumps."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = any(folder.iterdir())
        except OSError as fault:
            message = f"{folder} cannot be a dump's folder: {fault.strerror}"
            raise NpukitError(message, tries=["another folder"]) from fault
        if taken:
            raise NpukitError(f"{folder} is not empty, and a dump would mix with what it has", tries=["a new folder"])
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


def dumped(name: str, text: Callable[[], str]) -> None:
    """Write a file of the dump, if dumping is enabled."""
    folder = _FOLDER.get()
    if folder is not None:
        (folder / name).write_text(text(), encoding="utf-8", newline="\n")
