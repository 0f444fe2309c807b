"""Errors a user can act on: one line that names the thing and the fact, more facts if there are, then what to try."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path


class NpukitError(Exception):
    """Something the user gave is wrong, or failed. Printed without a traceback."""

    exit_status = 1

    def __init__(
        self,
        message: str,
        *,
        facts: Sequence[str] = (),
        tries: Sequence[str] | Callable[[], Iterable[str]] = (),
    ) -> None:
        self.message = plain(message)
        super().__init__(self.message)
        self.facts = tuple(map(plain, facts))
        self._tries = tries

    @cached_property
    def tries(self) -> tuple[str, ...]:
        """Things to try; those that take seconds to find are found when they are asked for, as most are not told."""
        return tuple(map(plain, self._tries() if callable(self._tries) else self._tries))


class DoesNotFit(NpukitError):
    """The network, image or plan does not fit the board, or does not match it."""

    exit_status = 3


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The way out that names the known name most like a wrong one, if one is like it."""
    return [f"did you mean {each}?" for each in get_close_matches(name, list(known), 1)]


LONGEST = 1000
"""Characters of a message; names out of a damaged file may have any number."""


def plain(message: str) -> str:
    """One line without what a terminal would obey: names come out of files that anybody may have made."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
    return escaped(message)


def escaped(text: str) -> str:
    """A text of any length as one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def raised(fault: Exception, code: Path) -> str:
    """The exception of a user's own code, and its deepest line in `code`, which is a file or a folder."""
    places = [(place.filename, place.lineno) for place in traceback.extract_tb(fault.__traceback__)]
    if isinstance(fault, SyntaxError):
        places.append((fault.filename or "", fault.lineno))
    own = [f" at {file}:{line}" for file, line in places if Path(file).is_relative_to(code)]
    return f"{type(fault).__name__}{''.join(own[-1:])}: {first_line(fault)}"


def first_line(fault: Exception) -> str:
    """The text of another library's fault, in one line."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return lines[0] if lines else type(fault).__name__


@contextmanager
def extra_packages(extra: str, what: str) -> Iterator[None]:
    """Turns the failing import of what an extra of npukit installs into an error that names that extra."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if (fault.name or "").partition(".")[0] == "npukit":
            raise
        message = f"{what} needs {fault.name}, which is not installed"
        raise NpukitError(message, tries=[f"pip install 'npukit[{extra}]'"]) from fault
