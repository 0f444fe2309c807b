"""The knowledge of a PE of how far the others are, from the messages it has waited for.

A vector clock for each PE: how many steps of each other PE are surely complete. A message may land only in bytes
whose last use, on the receiving PE, lies in those steps; so the bytes of a landing are reserved from the first step
that is not surely complete when the message is sent. That makes flow control needless within a frame; between
frames the root's knowledge of every PE's last step does the same.

It cannot deadlock either: every step has the key (frame, place in the emitted order), a PE runs its steps in that
order, and a wait depends on sends with smaller keys only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """Steps surely complete, by PE, as a message leaves: `done` of the sender's own, of all others a row that many
    share and nobody changes. What the row has at the sender's own place means nothing."""

    row: np.ndarray
    place: int
    done: int
    places: Mapping[int, int]

    def of(self, pe: int) -> int:
        place = self.places[pe]
        return self.done if place == self.place else int(self.row[place])


class Clocks:
    """The clocks of all PEs while their programs are emitted."""

    def __init__(self, pes: Sequence[int]) -> None:
        self.places = {pe: place for place, pe in enumerate(pes)}
        self._done = [0] * len(pes)
        self._rows = [np.zeros(len(pes), np.int32)] * len(pes)
        self._learnt = self._rows[0] if pes else np.zeros(0, np.int32)
        """The row that was made last: those who hear of the same senders know the same."""

    def complete(self, pe: int) -> None:
        """One more step of a PE."""
        self._done[self.places[pe]] += 1

    def known_to(self, pe: int) -> Known:
        place = self.places[pe]
        return Known(self._rows[place], place, self._done[place], self.places)

    def learn(self, pe: int, received: Sequence[Known]) -> None:
        """The PE has received messages that left with this knowledge.

        Who knows of a step of a PE knows all that this knew then, as it has heard of it by messages.
        """
        place = self.places[pe]
        row = self._rows[place]
        new = [known for known in received if row[known.place] < known.done]
        if not new:
            return
        learnt = np.maximum.reduce([row, *{id(known.row): known.row for known in new}.values()])
        for known in new:
            learnt[known.place] = max(known.done, learnt[known.place])
        self._rows[place] = self._learnt = self._shared(learnt, place)

    def _shared(self, learnt: np.ndarray, place: int) -> np.ndarray:
        """The row that was made last, if it differs in the PE's own place alone."""
        learnt[place] = self._learnt[place]
        return self._learnt if np.array_equal(learnt, self._learnt) else learnt

    def least_known(self, senders: Sequence[Known], pes: Sequence[int]) -> np.ndarray:
        """The steps of each of these PEs that all senders know to be complete."""
        places = [self.places[pe] for pe in pes]
        known = np.stack([sender.row[places] for sender in senders])
        at = {place: index for index, place in enumerate(places)}
        for number, sender in enumerate(senders):
            if sender.place in at:
                known[number, at[sender.place]] = sender.done
        return known.min(0)
