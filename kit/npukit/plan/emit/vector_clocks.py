"""Vector clocks: the number of steps of every other PE that a PE knows to be complete, from the messages it has waited
for.

A message may land only in bytes whose last use on the receiving PE lies in steps that the sender knows to be complete.
The bytes of a landing are therefore reserved from the first step that may be incomplete when the message is sent. This
makes flow control needless within a frame. Between frames, the root's knowledge of every PE's last step does the same.

No deadlock can occur. Every step has the key (frame, place in the emitted order), a PE runs its steps in this order,
and a wait depends only on sends with smaller keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """The number of steps known to be complete when a message leaves, by PE. `done`: the sender's own steps. `row`: the
    steps of all other PEs, a shared and immutable array. The entry of `row` at the sender's own `place` is meaningless.
    """

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
        """The row made last. PEs that hear of the same senders share a row."""

    def complete(self, pe: int) -> None:
        """Count another complete step of a PE."""
        self._done[self.places[pe]] += 1

    def known_to(self, pe: int) -> Known:
        place = self.places[pe]
        return Known(self._rows[place], place, self._done[place], self.places)

    def learn(self, pe: int, received: Sequence[Known]) -> None:
        """Merge the clocks of received messages into a PE's own clock.

        A PE that knows of a step also knows everything known at the step, because all knowledge comes by messages.
        """
        place = self.places[pe]
        row = self._rows[place]
        new = [known for known in received if row[known.place] < known.done]
        if not new:
            return
        learnt = np.maximum.reduce([row, *{id(known.row): known.row for known in new}.values()])
        for known in new:
            learnt[known.place] = max(known.done, learnt[known.place])
        learnt[place] = self._learnt[place]  # a row's entry in the PE's own place is meaningless
        self._learnt = self._rows[place] = self._learnt if np.array_equal(learnt, self._learnt) else learnt

    def least_known(self, senders: Sequence[Known], pes: Sequence[int]) -> np.ndarray:
        """The number of steps of each of these PEs that all senders know to be complete."""
        places = [self.places[pe] for pe in pes]
        known = np.stack([sender.row[places] for sender in senders])
        at = {place: index for index, place in enumerate(places)}
        for number, sender in enumerate(senders):
            if sender.place in at:
                known[number, at[sender.place]] = sender.done
        return known.min(0)
