"""Progress of long work, passed to what shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Progress(Protocol):
    """Shows stages, and how far a long stage has come."""

    def stage(self, name: str) -> None:
        """A stage begins; the one before is done."""
        ...

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        """The items, one after another, as a stage that knows its length."""
        ...


class Silent:
    """Shows nothing."""

    def stage(self, name: str) -> None:
        del name

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        del name
        return iter(items)


SILENT = Silent()
"""A progress that nobody looks at."""


class InNotebook:
    """Shows the stage that runs, and its count, in one line of a cell's output that each change writes anew."""

    def __init__(self, display: Any) -> None:
        self._line, self._begun, self._told = display("", display_id=True), monotonic(), 0.0

    def stage(self, name: str) -> None:
        self._tell(name)

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        for number, item in enumerate(items):
            if number == 0 or monotonic() - self._told > _OFTEN:
                self._tell(f"{name}: {number} of {len(items)}")
            yield item
        self._tell(f"{name}: {len(items)} of {len(items)}")

    def _tell(self, text: str) -> None:
        self._told = monotonic()
        self._line.update({"text/plain": f"{self._told - self._begun:.0f} s  {text}"}, raw=True)


_OFTEN = 0.2
"""Seconds between two lines of one stage."""


def visible(progress: Progress | None) -> Progress:
    """The progress that a caller gives; without one that of the notebook it runs in, or none."""
    if progress or "ipykernel" not in sys.modules:
        return progress or Silent()
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    return InNotebook(display)
