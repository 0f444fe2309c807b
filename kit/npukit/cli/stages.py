"""Stages of long work: on a terminal a live line, and a line for each finished stage; elsewhere plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, TypeVar

Item = TypeVar("Item")

_SHORTEST_SECONDS = 0.1
"""Seconds below which a stage is printed without time."""


class Stages:
    """Stages of a verb. Stages whose names begin with the same word count as one: `link image-1`, `link image-2`."""

    def __init__(self) -> None:
        self._console: Any = None
        self._alive: Any = None
        self.name, self._begun = "", 0.0

    def begin(self, name: str, console: Any) -> None:
        if self._alive and self._continues(name):
            self.name = name
            return
        self.finish()
        self._console, self.name, self._begun = console, name, monotonic()
        self._alive = console.status(self)
        self._alive.start()

    def __rich__(self) -> Any:
        """The running stage, and the time so far."""
        from rich.text import Text

        seconds = f"{monotonic() - self._begun:.0f} s"
        return Text(f"{seconds}  {self.name}", style="dim", no_wrap=True, overflow="ellipsis")

    def tell(self, name: str, *, each: bool) -> None:
        """Print a line for a new stage. If several stages count as one, only the first has a line, unless `each`."""
        if each or not self._continues(name):
            print(name, file=sys.stderr, flush=True)
        self.name = name

    def _continues(self, name: str) -> bool:
        return name.split()[:1] == self.name.split()[:1]

    def counted(self, items: Sequence[Item], name: str, console: Any) -> Iterator[Item]:
        """The items of a stage, with a bar of items done, time taken and time left; then a line as for other stages."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Left

        self._console, self._begun = console, monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), Left())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(name, total=len(items))
            for number, item in enumerate(items):
                self.name = f"{name}: {number} of {len(items)}"
                yield item
                bar.advance(task)
        self.name = name
        self._print_line()

    @property
    def done(self) -> str:
        """Name of the stage, without the expectation after a semicolon."""
        return self.name.partition("; ")[0]

    def finish(self) -> None:
        """End the running stage, if any, and print a line."""
        if self._alive:
            self._alive.stop()
            self._alive = None
            self._print_line()

    def _print_line(self) -> None:
        seconds = monotonic() - self._begun
        line = f"{self.done}  {seconds:.1f} s" if seconds >= _SHORTEST_SECONDS else self.done
        self._console.print(line, style="dim", markup=False, highlight=False, no_wrap=True, overflow="ellipsis")
