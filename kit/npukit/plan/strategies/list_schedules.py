"""List scheduling: each op in turn goes to the PEs with the earliest end (`layout/list_schedule.py`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from npukit.plan.layout.list_schedule import PRICES, ROOMS, ListSchedule, first_blocks, states_early
from npukit.plan.search.bound import may_be_resident
from npukit.plan.search.candidate import Candidate, Lacks, Outcome, Proposals
from npukit.plan.strategies.frames import resident
from npukit.plan.tensors.problem import Problem


def list_schedules(problem: Problem) -> Proposals:
    """The first frame with enough memory, from the largest room for constants and states down.

    In a network of repeated blocks, the first blocks show the room to begin with: smaller rooms follow, then larger.
    """
    if problem.board.noc is None or len(problem.order) == 1 or not may_be_resident(problem):
        return
    problem = replace(problem, graph=states_early(problem.graph))
    shown, rooms = first_blocks(problem.graph), ROOMS
    if shown is not problem.graph:
        room = yield from _first_room(replace(problem, graph=shown), ROOMS, probe=True)
        rooms = sorted(ROOMS, key=lambda part: (part > room, abs(part - room))) if room else ()
    yield from _first_room(problem, rooms)


def _first_room(problem: Problem, rooms: Sequence[float], probe: bool = False) -> Generator[Candidate, Outcome, float]:
    """The first room with a frame within memory, or 0. Where ops have no place, smaller rooms are not tried."""
    memory, too_small = problem.board.memory_for("constants").size, 0.0
    for part in rooms:
        if part <= too_small:
            continue
        placed = False
        for price in PRICES:
            assignment = ListSchedule(problem, int(part * memory), price).assignment()
            if assignment is None:
                continue
            placed, outcome = True, (yield from resident(problem, assignment, probe=probe))
            if not isinstance(outcome, Lacks):
                return part
            if outcome.plan:
                break
        too_small = too_small if placed else part
    return 0.0
