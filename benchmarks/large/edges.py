"""Least memory of a PE with a plan, with refusals before the search and without: a network that fits must not be
refused.

    python benchmarks/large/edges.py MODEL... [--on PES[:OBJECTIVE]...] [--board NAME] [--float]

Each model is imported as by `refusals.py` and planned on each number of PEs of a board whose memory changes in steps of
4 KB. The first figure is the least memory in which a draft for least memory passes (`plan/search/leanest.py`). From
there memory is raised until the kit finds a plan, the second figure. Then it is lowered with refusals switched off
(every draft passes and none is tight) until `BELOW` memories in a row have no plan; the smallest with a plan is the
third figure. A row shows the three, and processor seconds: of the kit's longest refusal, and of the whole row. The
kit's figure ends with UNSOUND if it is not the least. `refusals.md` has the table.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.large.refusals import imported, seconds
from benchmarks.state import commit

from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.pipeline import Prepared
from npukit.plan.planner import closest_plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.search.leanest import FarTooLarge, Lean, refuse_if_far
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WHERE = ("24", "24:throughput", "48", "48:throughput", "152", "152:throughput")
STEP = 4
"""Step of the memory's size in KB."""

BELOW = 2
"""Successive memory steps without a plan after which smaller ones are not tried."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--on", nargs="+", default=WHERE, metavar="PES[:OBJECTIVE]")
    parser.add_argument("--board", default="pe-mesh-152")
    parser.add_argument("--float", action="store_true")
    given = parser.parse_args()
    for model in given.models:
        with suppress(NpukitError):  # a model that the options do not suit
            prepared = imported(model, given.board, 1, in_float=given.float)
            for each in given.on:
                pes, _, objective = each.partition(":")
                print(Edge(prepared, given.board, int(pes), objective or "latency").row(model.stem), flush=True)


@dataclass
class Edge:
    """A network on `pes` PEs. Searches for the least memory with a plan; memory is counted in steps."""

    prepared: Prepared
    board: str
    pes: int
    objective: str
    refused: list[float] = field(default_factory=list)
    """Processor seconds of each refusal."""

    def row(self, model: str) -> str:
        """A row of the table."""
        began, most = seconds(), load_board(self.board).memory_for("activations").size // (STEP << 10)
        drafts = bisect_left(range(most), True, lo=1, key=self._passes)
        kit = self._least_of_the_kit(drafts, most)
        if kit is None:
            least, told = "-", "none"
        else:
            found = self._least_without_refusals(kit)
            least, told = f"{found * STEP}", f"{kit * STEP}{'' if max(drafts, kit) <= found else ' UNSOUND'}"
        refusal = f"{max(self.refused):.1f}" if self.refused else "-"
        return (
            f"| {model} | {self.pes} | {self.objective} | {least} | {drafts * STEP} | {told} "
            f"| {refusal} | {seconds() - began:.0f} | {commit()} |"
        )

    def _least_of_the_kit(self, drafts: int, most: int) -> int | None:
        """The least memory with a plan, at least `drafts`, or None. Found by doubling the distance, then bisecting."""
        above = next((step for step in _further(drafts, most) if self._fits(step)), None)
        if above is None:
            return None
        untried = above if above == drafts else drafts + (above - drafts) // 2 + 1
        return bisect_left(range(above), True, lo=untried, key=self._fits)

    def _least_without_refusals(self, kit: int) -> int:
        """The least memory with a plan if the search refuses nothing, downwards from `kit`, which has a plan."""
        least = step = kit
        with mock.patch.object(Lean, "is_far", _no), mock.patch.object(Lean, "is_tight", _no):
            while step > 1 and least - step < BELOW:
                step -= 1
                least = step if self._has_plan(step) else least
        return least

    def _passes(self, step: int) -> bool:
        problem = self._problem(step)
        try:
            refuse_if_far(problem, LatencySearch(problem, QUICK))
        except FarTooLarge:
            return False
        return True

    def _fits(self, step: int) -> bool:
        began, fits = seconds(), self._has_plan(step)
        if not fits:
            self.refused.append(seconds() - began)
        return fits

    def _has_plan(self, step: int) -> bool:
        problem = self._problem(step)
        try:
            return not missing_bytes(problem.board, closest_plan(problem, self.objective))
        except DoesNotFit:
            return False

    def _problem(self, step: int) -> Problem:
        board = load_board(self.board)
        memory = board.memory[0].model_copy(update={"size": step * STEP << 10})
        board = board.model_copy(update={"memory": (memory, *board.memory[1:])})
        return Problem(Graph(self.prepared.net), board, self.prepared.engines, max_pes=self.pes)


def _further(first: int, most: int) -> Iterator[int]:
    """Memory steps from `first`, at doubling distances, and at last `most`."""
    yield first
    for power in count():
        if first + (1 << power) >= most:
            break
        yield first + (1 << power)
    yield most


def _no(lean: Lean, board: Board) -> bool:
    """False for any draft."""
    del lean, board
    return False


if __name__ == "__main__":
    main()
