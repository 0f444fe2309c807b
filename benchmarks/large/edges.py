"""The least memory of a PE in which networks are planned, with refusals before a search and without: what fits must not
be refused.

    python benchmarks/large/edges.py MODEL... [--on PES[:OBJECTIVE]...] [--board NAME] [--float]

Each model is imported as by `refusals.py`, and planned on so many PEs of a board whose memory is changed in steps of
4 KB. From the least in which a draft for least memory passes (`plan/search/leanest.py`) memory is raised until the kit
has a plan. From there it is lowered, and planned as if every draft passed and none were tight, until that has had no
plan `BELOW` times in a row. So a row has the least memory of the three, and the processor's seconds of the kit's
longest refusal there and of all. It ends with UNSOUND if the kit's is not the least. `refusals.md` has the table.
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
"""KB."""

BELOW = 2
"""Memories in a row in which the search finds no plan, before smaller ones are not tried."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--on", nargs="+", default=WHERE, metavar="PES[:OBJECTIVE]")
    parser.add_argument("--board", default="pe-mesh-152")
    parser.add_argument("--float", action="store_true")
    given = parser.parse_args()
    for model in given.models:
        with suppress(NpukitError):  # of a model that is not as the options say
            prepared = imported(model, given.board, 1, in_float=given.float)
            for each in given.on:
                pes, _, objective = each.partition(":")
                print(Edge(prepared, given.board, int(pes), objective or "latency").row(model.stem), flush=True)


@dataclass
class Edge:
    """A network on so many PEs, of as little memory as it is planned in. Memory is in steps."""

    prepared: Prepared
    board: str
    pes: int
    objective: str
    refused: list[float] = field(default_factory=list)
    """Seconds of each refusal."""

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
        """The least memory with a plan from that on in which drafts pass, which is doubled and halved; or None."""
        above = next((step for step in _further(drafts, most) if self._fits(step)), None)
        if above is None:
            return None
        untried = above if above == drafts else drafts + (above - drafts) // 2 + 1
        return bisect_left(range(above), True, lo=untried, key=self._fits)

    def _least_without_refusals(self, kit: int) -> int:
        """The least memory with a plan of a search that refuses nothing, downwards from one with a plan."""
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
    """The first, then ever further ones up to the last."""
    yield first
    for power in count():
        if first + (1 << power) >= most:
            break
        yield first + (1 << power)
    yield most


def _no(lean: Lean, board: Board) -> bool:
    """False, of any draft."""
    del lean, board
    return False


if __name__ == "__main__":
    main()
