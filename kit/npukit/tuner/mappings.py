"""The search for a better mapping: simulation selects candidates, and measurement decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Protocol

from npukit.plan.search.neighbours import Candidate
from npukit.progress import Progress

CLOSE = 1.02
"""Largest predicted cost of a measured mapping, relative to the best prediction."""
AT_ONCE = 40
"""Neighbours simulated before a measurement of the best."""
MEASURED_LAST = 4
"""Number of best predictions measured at the end, when no neighbour is better."""


class Choosable(Protocol):
    """Mappings of a kind: starting points, neighbours of a mapping, and the text of a mapping."""

    def searched(self) -> Iterator[Candidate[Any]]: ...

    def neighbours(self, choice: Any, known: Callable[[Any], bool], /) -> Iterator[Candidate[Any]]: ...

    def spelled(self, choice: Any, /) -> str: ...


class MappingSearch:
    """Proposals in the order of prediction. Each mapping is simulated once."""

    def __init__(self, alternatives: Choosable, deadline: float, progress: Progress) -> None:
        self._alternatives, self._deadline, self._progress = alternatives, deadline, progress
        self._found: dict[Any, int] = {}
        self._proposed: set[Any] = set()

    def proposals(self) -> Iterator[str]:
        for candidate in self._alternatives.searched():
            self._take(candidate)
            if self._late():
                return
        if not self._found:
            return
        yield from self._best(2)
        while self._improved() and not self._late():
            yield from self._best(1)
        yield from self._best(MEASURED_LAST)

    def _improved(self) -> bool:
        """Simulate neighbours of the best mapping. True if one is better."""
        start = self._ranked()[0]
        best, left = f"the best of {len(self._found):,} takes {self._found[start]:,}", self._deadline - monotonic()
        self._progress.stage(f"simulate mappings; {best} cycles; at most {max(left, 0):.0f} s more")
        for count, candidate in enumerate(self._unseen(start)):
            self._take(candidate)
            better = candidate.cycles < self._found[start]
            if self._late() or better or (count >= AT_ONCE and self._ranked()[0] != start):
                return better
        return False

    def _unseen(self, start: Any) -> Iterator[Candidate[Any]]:
        return self._alternatives.neighbours(start, self._found.__contains__)

    def _take(self, candidate: Candidate[Any]) -> None:
        self._found.setdefault(candidate.choice, candidate.cycles)

    def _late(self) -> bool:
        return monotonic() > self._deadline

    def _ranked(self) -> list[Any]:
        return sorted(self._found, key=lambda choice: (self._found[choice], self._alternatives.spelled(choice)))

    def _best(self, count: int) -> Iterator[str]:
        """Up to `count` of the best predictions that have not been proposed yet."""
        ranked = self._ranked()
        least = self._found[ranked[0]]
        for choice in [each for each in ranked if each not in self._proposed][:count]:
            if self._found[choice] <= CLOSE * least:
                self._proposed.add(choice)
                yield self._alternatives.spelled(choice)
