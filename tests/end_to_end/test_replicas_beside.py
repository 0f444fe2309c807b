"""A whole build of replica groups beside a PE that only prefetches their weights, as on large meshes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.net.net import CORE
from npukit.plan import planner
from npukit.plan.batch.batch import Pipeline
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.batch_search.data_parallel import batch_of
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.simulate import with_predictions
from npukit.plan.search.layout_search import QUICK, LatencySearch
from npukit.plan.tensors.problem import Problem

MODEL = CHECKOUT / "examples/digits/digits_int8.tflite"


def two_pairs_and_one(problem: Problem) -> Plan:
    """Two groups of two PEs; the fifth PE requests the weights of both."""
    assignment = LatencySearch(problem.on(problem.order[:2]), QUICK, fetched=True).best()
    streamed = frozenset(op.name for op in problem.graph.ops if op.engine != CORE and len(op.parts[0].inputs) == 3)
    wanted = replace(
        batch_of(assignment, problem.order, 2), pipeline=Pipeline(micro_batches=2), stream=StreamWeights(streamed, 1024)
    )
    return with_predictions(problem.net, problem.board, emit_batch(problem, wanted))


@pytest.mark.exhaustive
def test_a_build_of_replicas_and_a_prefetching_pe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(planner.OBJECTIVES, "throughput", two_pairs_and_one)
    built = api.build(MODEL, output=tmp_path / "out", options=api.Options(pes=5, objective="throughput"))
    plan = built.plan()
    assert len(plan.alike) == 2
    assert len(plan.pes) == 5
    assert "from PEs" in (built.folder / "plan.txt").read_text()
    assert api.validate(built.folder, cases=plan.frames).passed
