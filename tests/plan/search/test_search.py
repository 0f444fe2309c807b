"""The search keeps the best plan of all candidates, within a budget, and survives an interrupt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from npukit.board.board import Board, load_board
from npukit.plan.batch.batch import frame
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.search.candidate import Candidate, Fits, Lacks, Outcome, Proposals, Slow, Strategy, summary_of
from npukit.plan.search.search import OBJECTIVES, Search
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem, Work
from plan.boards import with_memory
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def problem(board: Board = BOARD, told: list[str] | None = None, most: int = 1000) -> Problem:
    """Two layers of 32 rows on four PEs."""
    b = Builder("rows")
    graph = Graph(b.net(b.conv(b.conv(b.input(1, 32, 32, 8), 16, 3), 16, 3)))
    tell = (told if told is not None else list[str]()).append
    return Problem(graph, board, engines(board), tuple(range(4)), tell, Work(most=most))


def on(graph: Graph, pes: int) -> Assignment:
    """The rows of each layer on this number of PEs."""
    boxes = {op.name: to_boxes(grid(graph.shape(op.output), (1, pes, 1, 1), (1, 1, 1, 1))) for op in graph.ops}
    return {name: tuple(Tile(pe, box) for pe, box in enumerate(cut)) for name, cut in boxes.items()}


def trying(counts: Sequence[int], seen: list[Outcome], *, interrupted: bool = False) -> Strategy:
    """A strategy that proposes frames on these numbers of PEs, and collects their outcomes."""

    def frames(problem: Problem) -> Proposals:
        for count in counts:
            seen.append((yield Candidate(problem, frame(on(problem.graph, count)))))
        if interrupted:
            raise KeyboardInterrupt

    return frames


def run(objective: str, given: Problem, *strategies: Strategy) -> Search:
    search = Search(OBJECTIVES[objective])
    search.run(given, strategies)
    return search


@pytest.mark.parametrize(("objective", "pes"), [("latency", 4), ("throughput", 4), ("memory", 1)])
def test_the_best_by_the_objective_is_kept_whatever_the_order(objective: str, pes: int) -> None:
    for counts in ((1, 2, 4), (4, 2, 1)):
        search = run(objective, problem(), trying(counts, []))
        assert search.best
        assert isinstance(search.best.outcome, Fits)
        assert search.best.outcome.plan.pes_used == pes
        assert search.best.outcome.plan.objective == objective
        assert len(search.log) == 3


def test_a_candidate_too_slow_by_its_bound_is_not_emitted() -> None:
    given, seen = problem(), list[Outcome]()
    run("latency", given, trying((4,), seen))
    done = given.work.done
    run("latency", given, trying((4, 1), seen))
    assert isinstance(seen[-1], Slow)
    assert given.work.done == 2 * done


def test_a_candidate_is_emitted_once_and_what_is_emitted_is_counted() -> None:
    given, seen = problem(), list[Outcome]()
    search = run("latency", given, trying((4, 4), seen))
    assert seen[0] is seen[1]
    assert len(search.log) == 1
    assert isinstance(seen[0], Fits)
    plan = seen[0].plan
    assert given.work.done == len(plan.messages) + sum(len(pe.steps) for pe in plan.pes)


def test_a_search_ends_when_its_budget_is_spent() -> None:
    given, seen = problem(most=1), list[Outcome]()
    search = run("latency", given, trying((1, 2, 4), seen), trying((4,), seen))
    assert [line.outcome for line in search.log] == ["fits"]
    assert search.best


@pytest.mark.parametrize("kb", [128, 22])
def test_a_candidate_for_a_part_of_the_network_is_never_kept(kb: int) -> None:
    given, b = problem(with_memory(kb)), Builder("rows")
    shown = replace(given, graph=Graph(b.net(b.conv(b.input(1, 32, 32, 8), 16, 3))))

    def parts(problem: Problem) -> Proposals:
        del problem
        yield Candidate(shown, frame(on(shown.graph, 1)))

    search = run("latency", given, parts)
    assert len(search.log) == 1
    assert search.best is None
    assert search.nearest is None


def test_the_nearest_to_fit_is_known() -> None:
    seen = list[Outcome]()
    search = run("latency", problem(with_memory(22)), trying((1, 4, 2), seen))
    assert search.best is None
    missing = [each.missing for each in seen if isinstance(each, Lacks)]
    assert search.nearest
    assert isinstance(search.nearest.outcome, Lacks)
    assert (search.nearest.outcome.missing, search.nearest.candidate.batch.pes) == (min(missing), 4)


def test_an_interrupt_ends_the_search_with_what_it_has_found() -> None:
    told, seen = list[str](), list[Outcome]()
    search = run("latency", problem(told=told), trying((1, 2), seen, interrupted=True), trying((4,), seen))
    assert len(seen) == 2
    assert search.best
    assert told[-1].startswith("best of 2: ")
    with pytest.raises(KeyboardInterrupt):
        run("latency", problem(), trying((), seen, interrupted=True))


def test_a_probe_is_never_the_result() -> None:
    def probes(problem: Problem) -> Proposals:
        outcome = yield Candidate(problem, frame(on(problem.graph, 4)), probe=True)
        assert isinstance(outcome, Fits)

    search = run("latency", problem(), probes)
    assert search.best is None
    assert search.log[0].outcome == "fits"


def test_the_summary_has_a_line_for_each_strategy() -> None:
    search = run("latency", problem(), trying((4, 2, 1), []))
    (line,) = summary_of(search.log)
    assert search.best
    assert line.startswith("frames: 1 fits, 2 too slow; best: ")
    assert search.best.line.text in line
