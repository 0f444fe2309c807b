"""Errors for the user: a line with the subject and the fact, more facts if any, then remedies."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path


class NpukitError(Exception):
    """Invalid input from the user, or a failed operation. Printed without a traceback."""

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
        """The remedies. A callable defers the search, which may take seconds: most errors are never printed."""
        return tuple(map(plain, self._tries() if callable(self._tries) else self._tries))


class DoesNotFit(NpukitError):
    """The network, image or plan does not fit or match the board. `tried`: lines on the planner's candidates."""

    exit_status = 3
    tried: Sequence[str] = ()


class Differs(NpukitError):
    """The firmware computes, moves or holds other bytes than the reference or the plan says."""

    exit_status = 3


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """A remedy with the known name most similar to a wrong name, if any is similar."""
    return [f"did you mean {each}?" for each in get_close_matches(name, list(known), 1)]


LONGEST_MESSAGE = 1000
"""Limit on the characters of a message: names from damaged files may be of any length."""


def plain(message: str) -> str:
    """The message as one line of limited length without control characters: names may come from strangers' files."""
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE // 2]} ... {message[-LONGEST_MESSAGE // 2 :]}"
    return escaped(message)


def escaped(text: str) -> str:
    """A text of any length as a single line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def raised(fault: Exception, code: Path) -> str:
    """The exception of a user's own code, with the deepest line in `code`, a file or a folder."""
    places = [(place.filename, place.lineno) for place in traceback.extract_tb(fault.__traceback__)]
    if isinstance(fault, SyntaxError):
        places.append((fault.filename or "", fault.lineno))
    own = [f" at {file}:{line}" for file, line in places if Path(file).is_relative_to(code)]
    return f"{type(fault).__name__}{''.join(own[-1:])}: {first_line(fault)}"


def first_line(fault: Exception) -> str:
    """The first line of another library's exception."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return lines[0] if lines else type(fault).__name__


@contextmanager
def extra_packages(extra: str, what: str) -> Iterator[None]:
    """Turn a failing import into an error that names the missing extra of npukit."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if (fault.name or "").partition(".")[0] == "npukit":
            raise
        message = f"{what} needs {fault.name}, which is not installed"
        raise NpukitError(message, tries=[f"pip install 'npukit[{extra}]'"]) from fault
