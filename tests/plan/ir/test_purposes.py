"""The messages consumed by a wait, in any order of arrival."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit.board.board import load_board
from npukit.options import Options
from npukit.pipeline import compile_network
from npukit.plan.ir.plan import SENT_FLAG, Plan, Send, Wait
from npukit.plan.ir.text import awaited, print_plan
from npukit.progress import Silent

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def plan_of(model: Path, objective: str) -> Plan:
    options = Options(pes=4, objective=objective)  # pyright: ignore[reportArgumentType]
    return compile_network(model, load_board("pe-mesh"), options, Silent()).plan


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_what_a_wait_takes_has_arrived_when_it_passes(objective: str) -> None:
    plan = plan_of(DIGITS, objective)
    for seed in range(5):
        Interleaving(plan, random.Random(seed)).run()


class Interleaving:
    """Executes the sends and waits of a plan, PEs in random order. Each message arrives immediately."""

    def __init__(self, plan: Plan, chance: random.Random) -> None:
        self.plan, self.chance = plan, chance
        self.awaited = {pe.pe: awaited(plan, pe) for pe in plan.pes}
        self.counted: Counter[tuple[int, int]] = Counter()
        self.arrived: set[tuple[int, int]] = set()
        self.places = {pe.pe: 0 for pe in plan.pes}

    def run(self) -> None:
        steps = {pe.pe: pe.steps for pe in self.plan.pes}
        while going := [pe for pe, place in self.places.items() if place < len(steps[pe]) and self._may_go(pe)]:
            self._step(self.chance.choice(going))
        assert all(place == len(steps[pe]) for pe, place in self.places.items()), "some PE waits for ever"
        taken = {(pe, number) for pe, waits in self.awaited.items() for each in waits.values() for number in each}
        assert taken == self.arrived

    def _may_go(self, pe: int) -> bool:
        step = self.plan.by_pe[pe].steps[self.places[pe]]
        return not isinstance(step, Wait) or step.flag == SENT_FLAG or self.counted[pe, step.flag] >= step.count

    def _step(self, pe: int) -> None:
        index = self.places[pe]
        step = self.plan.by_pe[pe].steps[index]
        self.places[pe] += 1
        if isinstance(step, Send):
            for landing in self.plan.messages[step.message].landings:
                self.counted[landing.pe, landing.flag] += 1
                self.arrived.add((landing.pe, step.message))
        elif isinstance(step, Wait) and step.flag != SENT_FLAG:
            self.counted[pe, step.flag] -= step.count
            assert {(pe, number) for number in self.awaited[pe][index]} <= self.arrived


@pytest.mark.exhaustive
def test_the_text_says_what_is_waited_for() -> None:
    frame, batch = (print_plan(plan_of(DIGITS, objective)) for objective in ("latency", "throughput"))
    assert "# sent messages have left" in batch
    assert "# conv2d_2 from PEs 1, 2, 3" in frame
