"""The output of a verb: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from npukit.cli.stages import Stages
from npukit.errors import NpukitError, escaped

Item = TypeVar("Item")

PIPE_WIDTH = 240

FEW = 3
"""Columns from which on a table may become records in a narrow terminal."""

STOPPED = 130
"""Exit status after Ctrl-C, as in shells."""

TRACEBACKS_FROM = 2
"""Number of -v from which on tracebacks are shown."""


@dataclass(frozen=True)
class Terminal:
    """A verb's output to the user. `verbosity`: the count of -v, or -1 with -q."""

    as_json: bool = False
    verbosity: int = 0
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
            style = "bold red" if line is lines[0] else ""
            console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def print(self, text: str = "") -> None:
        """Print a line of the result for people; nothing with --json."""
        self.finish()
        if not self.as_json:
            _console(stderr=False).print(escaped(text), markup=False, highlight=False, soft_wrap=True)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print columns for people. A heading that begins with `>` is right-aligned with the column.

        A column without values is left out. Where a terminal is too narrow, each row becomes a line with the name and
        lines with the values.
        """
        self.finish()
        if self.as_json:
            return
        console = _console(stderr=False)
        headings, *rows = _with_values([headings, *rows])
        table = _table(headings, rows)
        if len(headings) < FEW or _loses_nothing(table, console):
            console.print(table)
        else:
            _print_records(console, headings, rows)

    def note(self, text: str, style: str = "") -> None:
        """Print a remark beside the result."""
        self.finish()
        if self.verbosity >= 0:
            _console(stderr=True).print(escaped(text), style=style, markup=False, highlight=False, soft_wrap=True)

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


def _console(*, stderr: bool) -> Any:
    from rich.console import Console

    console = Console(stderr=stderr)
    # A pipe has no width. The reader is a program, or a person with a wide window.
    return console if console.is_terminal else Console(stderr=stderr, width=PIPE_WIDTH)


def _with_values(table: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Headings and rows without the columns that have no values."""
    columns = [column for number, column in enumerate(zip(*table, strict=True)) if number == 0 or any(column[1:])]
    return [*zip(*columns, strict=True)]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    cut = "fold" if len(headings) < FEW else "ellipsis"
    for heading in headings:
        table.add_column(heading.lstrip(">"), justify="right" if heading.startswith(">") else "left", overflow=cut)
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    return table


def _loses_nothing(table: Any, console: Any) -> bool:
    """True if the terminal has room for every word of a table, perhaps in several lines."""
    if console.measure(table, options=console.options.update(max_width=PIPE_WIDTH)).maximum <= console.width:
        return True
    with console.capture() as shown:
        console.print(table)
    return "\N{HORIZONTAL ELLIPSIS}" not in shown.get()


def _print_records(console: Any, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print each row as a record: the first cell, then the other cells with headings, as many as fit a line."""
    from rich.text import Text

    for first, *others in rows:
        pairs = zip(headings[1:], others, strict=True)
        told = "; ".join(f"{heading.lstrip('>')} {escaped(cell)}".strip() for heading, cell in pairs if cell)
        console.print(Text(escaped(first), style="bold"), soft_wrap=True)
        lines = Text(told).wrap(console, max(console.width - len(_INDENT), 1), overflow="fold")
        for line in lines:
            console.print(Text(_INDENT).append_text(line), soft_wrap=True)


_INDENT = "  "
