"""Progress of long work, passed to what shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

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
