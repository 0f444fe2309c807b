"""A whole build of replica groups beside a PE that only prefetches their weights, as on large meshes."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.net.net import CORE
from npukit.plan import planner
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.layout.layout_search import QUICK, LatencySearch
from npukit.plan.search.candidate import Candidate, Proposals
from npukit.plan.strategies.groups import groups_of
from npukit.plan.tensors.problem import Problem

MODEL = CHECKOUT / "examples/digits/digits_int8.tflite"


def two_pairs_and_one(problem: Problem) -> Proposals:
    """Two groups of two PEs; the fifth PE requests the weights of both."""
    assignment = LatencySearch(problem.on(problem.order[:2]), QUICK, fetched=True).best()
    streamed = frozenset(op.name for op in problem.graph.ops if op.engine != CORE and len(op.parts[0].inputs) == 3)
    groups, prefetchers = tuple(groups_of(assignment, problem.order, 2)), tuple(problem.order[:1])
    stream = StreamWeights(streamed, 1024)
    yield Candidate(problem, Batch(groups, 1, 2, stream, prefetchers=prefetchers))


@pytest.mark.exhaustive
def test_a_build_of_replicas_and_a_prefetching_pe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(planner.STRATEGIES, "throughput", lambda problem, search: [two_pairs_and_one])
    built = api.build(MODEL, output=tmp_path / "out", options=api.Options(pes=5, objective="throughput"))
    plan = built.plan()
    assert len(plan.alike) == 2
    assert len(plan.pes) == 5
    assert "from PEs" in (built.folder / "plan.txt").read_text()
    assert api.validate(built.folder, cases=plan.frames).passed
