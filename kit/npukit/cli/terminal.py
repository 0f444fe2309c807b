"""The output of a verb: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, TypeVar

from npukit.cli.stages import Stages
from npukit.errors import NpukitError, escaped

Item = TypeVar("Item")

PIPE_WIDTH = 80
"""Columns of a pipe, which has no width of its own."""

WIDEST = 10_000
"""Columns with --wide: no limit."""

STOPPED = 130
"""Exit status after Ctrl-C, as in shells."""

TRACEBACKS_FROM = 2
"""Number of -v from which on tracebacks are shown."""


@dataclass(frozen=True)
class Terminal:
    """A verb's output to the user. `verbosity`: the count of -v, or -1 with -q. `wide`: tables have all columns.
    `plugins_of`: the board file with the verb's plug-ins."""

    as_json: bool = False
    verbosity: int = 0
    wide: bool = False
    plugins_of: str | None = None
    _stages: Stages = field(default_factory=Stages, repr=False, compare=False)
    _told: list[Any] = field(default_factory=list, repr=False, compare=False)

    def result(self, value: Any) -> None:
        """Print the object or list for --json."""
        self.finish()
        if self.as_json:
            self._told.append(value)
            print(json.dumps(value, indent=2), flush=True)

    def error(self, error: NpukitError) -> None:
        """Print an error on stderr; with --json also as the JSON value, unless a result was printed."""
        tries = error.tries  # before progress ends: the search for remedies may take seconds
        self.finish()
        if not self._told:
            self.result(failure(error.message, error.exit_status, error.facts, tries))
        console = _console(stderr=True)
        if self.verbosity >= TRACEBACKS_FROM:
            console.print_exception()
        lines = [f"error: {error.message}", *(f"  {fact}" for fact in error.facts)]
        if tries:
            lines += ["Things to try:", *(f"  - {way}" for way in tries)]
        for line in lines:
            _print(console, line, "bold red" if line is lines[0] else "", whole=not console.is_terminal)

    def print(self, text: str = "", *, whole: bool = False) -> None:
        """Print a line of the result for people; nothing with --json or -q. A `whole` line is not wrapped."""
        self.finish()
        if self._is_for_people:
            _print(self._out(), escaped(text), whole=whole) if text else print()

    def made(self, path: object, text: str = "") -> None:
        """Print `text`, by default the path of the result. With -q print only the path."""
        self.finish()
        if self._is_for_people:
            _print(self._out(), escaped(text or str(path)), whole=False)
        elif not self.as_json:
            print(path, flush=True)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]], few: Sequence[str] = ()) -> None:
        """Print columns for people. A heading that begins with `>` is right-aligned with the column.

        A column without values is left out. `few`: the headings of the columns without --wide, by default all. Long
        texts take several lines within their column.
        """
        self.finish()
        if self._is_for_people:
            self._out().print(_table(_with_values([headings, *rows], () if self.wide else few)))

    @property
    def _is_for_people(self) -> bool:
        return not self.as_json and self.verbosity >= 0

    def _out(self) -> Any:
        return _console(stderr=False, width=WIDEST if self.wide else None)

    def note(self, text: str, style: str = "") -> None:
        """Print a remark beside the result."""
        self.finish()
        if self.verbosity >= 0:
            console = _console(stderr=True)
            _print(console, escaped(text), style, whole=not console.is_terminal)

    def stage(self, name: str) -> None:
        """Begin a step of long work: live on a terminal, a plain line in a pipe or a log."""
        if self.verbosity < 0:
            return
        name = escaped(name)
        if sys.stderr.isatty():
            self._stages.begin(name, _console(stderr=True))
        else:
            self._stages.tell(name, each=self.verbosity > 0)

    def finish(self) -> None:
        """End the last stage."""
        self._stages.finish()

    def stopped(self, left: str) -> None:
        """Report that the user has interrupted the verb."""
        told = ": ".join(filter(None, ("stopped", self._stages.done)))
        told = f"{told}; {left}" if left else told
        if not self._told:
            self.result(failure(told, STOPPED))
        self.note(told)

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        """The items, with a progress bar."""
        if self.verbosity < 0 or not sys.stderr.isatty():
            self.stage(name)
            yield from items
            return
        self.finish()
        yield from self._stages.counted(items, name, _console(stderr=True))


def failure(message: str, status: int, facts: Sequence[str] = (), tries: Sequence[str] = ()) -> dict[str, Any]:
    """The value for --json if there is no result."""
    return {"error": {"message": message, "facts": facts, "tries": tries, "status": status}}


@contextmanager
def errors_as_lines(terminal: Terminal, left: str = "") -> Iterator[None]:
    """Print an error as a single line, and exit with the error's status; a traceback is shown only with -vv. Ctrl-C
    prints a line with the interrupted stage and the text `left`."""
    try:
        yield
    except NpukitError as error:
        terminal.error(error)
        raise SystemExit(error.exit_status) from error
    except BrokenPipeError:
        raise
    except KeyboardInterrupt as stop:
        terminal.stopped(left)
        raise SystemExit(STOPPED) from stop
    except Exception as error:
        terminal.error(NpukitError(f"npukit itself failed: {type(error).__name__}: {error}", tries=_OWN_FAULT))
        raise SystemExit(1) from error


_OWN_FAULT = ("the same command with -vv, which shows where", "npukit doctor")


def _console(*, stderr: bool, width: int | None = None) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr, width=width)
    return console if width or console.is_terminal else Console(stderr=stderr, width=PIPE_WIDTH)


def _print(console: Any, text: str, style: str = "", *, whole: bool) -> None:
    """Print a text in lines of whole words, or in a single line, for programs to search."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    words = {"subsequent_indent": indent, "break_long_words": False, "break_on_hyphens": False}
    for line in [text] if whole else wrap(text, console.width, **words):
        console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def _with_values(table: Sequence[Sequence[str]], few: Sequence[str]) -> list[Sequence[str]]:
    """Headings and rows of the columns in `few`, or of all, without columns that have no values."""
    columns = [
        column
        for number, column in enumerate(zip(*table, strict=True))
        if column[0] in (few or table[0]) and (number == 0 or any(column[1:]))
    ]
    return [*zip(*columns, strict=True)]


def _table(table: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    headings, *rows = table
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        number = heading.startswith(">")
        shown.add_column(
            heading.removeprefix(">"), justify="right" if number else "left", overflow="fold", no_wrap=number
        )
    for row in rows:
        shown.add_row(*(Text(escaped(cell)) for cell in row))
    return shown
