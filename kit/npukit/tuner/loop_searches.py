"""MetaSchedule's searches for all kernels with costly loops, side by side. A trial measures a proposal for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from time import monotonic
from typing import TYPE_CHECKING

from npukit.net.importer.arrangements import TILES, arrangement_of
from npukit.net.importer.loops import LoopKernel
from npukit.tuning import TuningRecord

if TYPE_CHECKING:
    from npukit.tuner.meta_schedule import LoopSearch

TRIALS = 48
"""Limit on the proposals for one kernel in all sessions together."""
WORTH_IT = 0.02
"""Smallest share of a frame for a kernel to be searched."""


class LoopSearches:
    """The loop searches of kernels above `WORTH_IT`, continued from their tuning records."""

    def __init__(self, kernels: Mapping[str, LoopKernel], found: Callable[[str], TuningRecord], frame: int) -> None:
        costs = {key: found(key).cost for key in kernels}
        self._hot = [key for key in sorted(kernels, key=lambda key: -costs[key]) if costs[key] > WORTH_IT * frame]
        self._kernels, self._found = kernels, found
        self._asked: dict[tuple[str, str], LoopSearch] = {}

    def proposals(self, deadline: float) -> Iterator[dict[str, str]]:
        """A choice for each kernel with proposals left, until all are exhausted or the time is over."""
        asking = {key: self._asking(key) for key in self._hot}
        while monotonic() < deadline:
            wanted = {key: next(asking[key], None) if monotonic() < deadline else None for key in self._hot}
            found = {key: choice for key, choice in wanted.items() if choice}
            if not found:
                return
            yield found

    def tell(self, key: str, choice: str, cost: int) -> None:
        """Pass on the cost of a proposal. Choices from elsewhere are ignored."""
        search = self._asked.get((key, choice))
        if search:
            search.tell(choice, cost)

    def _asking(self, key: str) -> Iterator[str]:
        """The proposals of a kernel's searches in turn."""
        from npukit.tuner.meta_schedule import searches_for

        found = self._found(key)
        left = TRIALS - sum(choice.startswith(f"{TILES} ") for choice in found.tried)
        searches: list[LoopSearch] = []
        if left > 0:
            searches = searches_for(self._kernels[key], arrangement_of(found.choice), found.cost, found.tried)
        over: set[int] = set()
        for number, search in cycle(enumerate(searches)):
            choice = None if number in over else search.ask()
            if choice is None:
                over.add(number)
            else:
                self._asked[key, choice] = search
                left -= 1
                yield choice
            if left <= 0 or len(over) == len(searches):
                return
