"""Vector clocks: each PE's knowledge of other PEs' steps, after random messages, against a simple implementation."""

from __future__ import annotations

import numpy as np
import pytest

from npukit.plan.emit.vector_clocks import Clocks, Known

PES: tuple[int, ...] = (7, 3, 12, 40, 41, 5)


class OneByOne:
    """Clocks as defined, one counter per pair of PEs."""

    def __init__(self) -> None:
        self.clocks = {pe: dict.fromkeys(PES, 0) for pe in PES}

    def learn(self, pe: int, received: list[dict[int, int]]) -> None:
        for known in received:
            self.clocks[pe] = {other: max(steps, known[other]) for other, steps in self.clocks[pe].items()}


@pytest.mark.parametrize("seed", range(20))
def test_clocks_are_those_of_the_definition(seed: int) -> None:
    """Random steps, messages to several PEs, and waits for some of the messages in flight, the oldest first."""
    random, clocks, right = np.random.default_rng(seed), Clocks(PES), OneByOne()
    arriving: dict[int, list[tuple[Known, dict[int, int]]]] = {pe: [] for pe in PES}
    for _ in range(300):
        pe = int(random.choice(PES))
        clocks.complete(pe)
        right.clocks[pe][pe] += 1
        if random.random() < 0.5:
            sent = clocks.known_to(pe), dict(right.clocks[pe])
            for to in random.choice(PES, size=3, replace=False).tolist():
                arriving[to].append(sent)
        else:
            taken = arriving[pe][: int(random.integers(4))]
            del arriving[pe][: len(taken)]
            clocks.learn(pe, [known for known, _ in taken])
            right.learn(pe, [known for _, known in taken])
        assert all(clocks.known_to(each).of(pe) == right.clocks[each][pe] for each in PES for pe in PES)


def test_what_all_senders_know_is_the_least_of_each() -> None:
    clocks = Clocks(PES)
    for pe, steps in zip(PES, range(1, 7), strict=True):
        for _ in range(steps):
            clocks.complete(pe)
    clocks.learn(3, [clocks.known_to(12), clocks.known_to(40)])
    clocks.learn(7, [clocks.known_to(3), clocks.known_to(41)])
    senders = [clocks.known_to(3), clocks.known_to(7)]
    assert clocks.least_known(senders, [3, 7, 12, 41]).tolist() == [2, 0, 3, 0]


def test_pes_that_heard_of_the_same_share_one_row() -> None:
    """PEs with the same received messages share a single copy of their clock, as after a gather on a large board."""
    clocks = Clocks(range(100))
    for pe in range(10):
        clocks.complete(pe)
    sent = [clocks.known_to(pe) for pe in range(10)]
    for pe in range(10):
        clocks.learn(pe, sent[:pe] + sent[pe + 1 :])
    assert len({id(clocks.known_to(pe).row) for pe in range(10)}) <= 2
