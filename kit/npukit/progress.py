"""Progress of long work, reported to a display."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Progress(Protocol):
    """A display of stages, and of the progress within a long stage."""

    def stage(self, name: str) -> None:
        """Begin a stage; the previous stage is done."""
        ...

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        """Iterate over the items as a stage of known length."""
        ...


class Silent:
    """Shows nothing."""

    def stage(self, name: str) -> None:
        del name

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        del name
        return iter(items)


SILENT = Silent()
"""The progress without a display."""


class InNotebook:
    """Show the current stage and its count in one line of a notebook cell, updated in place."""

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
"""Seconds between two updates within a stage."""


def visible(progress: Progress | None) -> Progress:
    """The caller's progress; without one the notebook's, or none outside notebooks."""
    if progress or "ipykernel" not in sys.modules:
        return progress or Silent()
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    return InNotebook(display)
