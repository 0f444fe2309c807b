"""The knowledge of a PE of how far the others are, from the messages it has waited for.

A vector clock for each PE: how many steps of each other PE are surely complete. A message may land only in bytes
whose last use, on the receiving PE, lies in those steps; so the bytes of a landing are reserved from the first step
that is not surely complete when the message is sent. That makes flow control needless within a frame; between
frames the root's knowledge of every PE's last step does the same.

It cannot deadlock either: every step has the key (frame, place in the emitted order), a PE runs its steps in that
order, and a wait depends on sends with smaller keys only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Known:
    """Steps surely complete, by PE, as a message leaves."""

    steps: np.ndarray
    places: dict[int, int]

    def of(self, pe: int) -> int:
        return int(self.steps[self.places[pe]])


class Clocks:
    """The clocks of all PEs while their programs are emitted."""

    def __init__(self, pes: Sequence[int]) -> None:
        self._places = {pe: place for place, pe in enumerate(pes)}
        self._steps = np.zeros((len(pes), len(pes)), np.int64)

    def complete(self, pe: int) -> None:
        """One more step of a PE."""
        place = self._places[pe]
        self._steps[place, place] += 1

    def known_to(self, pe: int) -> Known:
        return Known(self._steps[self._places[pe]].copy(), self._places)

    def learn(self, pe: int, known: Known) -> None:
        """The PE has received a message that left with this knowledge."""
        row = self._steps[self._places[pe]]
        np.maximum(row, known.steps, out=row)
