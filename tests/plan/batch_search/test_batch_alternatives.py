"""Rounds compared by tuning: their text reads back, neighbours of a round, and builds with the tuned round."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.accel.engines import assign_engines, plugins_of, with_core
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.plan.batch_search.batch_alternatives import BatchAlternatives
from npukit.plan.search.tuned_choices import BatchSpec, network_key
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.tensors.routes import pes_in_order
from npukit.quantize.models import load_model
from npukit.tuning import VARIABLE, Database, TuningRecord

MODEL = CHECKOUT / "examples/digits/digits_int8.tflite"
CHOICE = BatchSpec(2, ((1, 2, 1, 8), (), (4,)), 2, 3, 3, 4096)
TEXT = (
    "batches on groups of 2 PEs with 2 interleaved frames and 3 micro-batches,"
    " room for 3 weight tiles of 4096 bytes: 1x2x1x8 - 4"
)


def test_a_batch_is_a_text_that_reads_back() -> None:
    assert str(CHOICE) == TEXT
    assert BatchSpec.parse(TEXT) == CHOICE


@pytest.mark.parametrize(
    "text", ["batches", TEXT.replace("with 2 int", "with 0 int"), TEXT.replace("x8", "x0"), f"{TEXT}!"]
)
def test_what_is_no_batch_is_refused(text: str) -> None:
    with pytest.raises(NpukitError, match="is no tuning record"):
        BatchSpec.parse(text)


@pytest.fixture(scope="module")
def on_two() -> BatchAlternatives:
    board = load_board("pe-mesh")
    engines = with_core(plugins_of(board))
    net = assign_engines(load_model(MODEL).net, engines)
    return BatchAlternatives(Problem(Graph(net), board, engines, pes_in_order(board)[:2]), None)


def test_the_first_batches_are_on_groups_of_any_size_and_more_interleaved_frames_help(
    on_two: BatchAlternatives,
) -> None:
    found = list(islice(on_two.searched(), 3))
    assert [each.choice.interleaved for each in found] == [1, 2, 4]
    assert found[0].cycles > found[1].cycles >= found[2].cycles


def test_what_is_beside_a_batch_is_another_batch_of_it(on_two: BatchAlternatives) -> None:
    start = next(on_two.searched()).choice
    beside = [each.choice for each in islice(on_two.neighbours(start, {start}.__contains__), 3)]
    assert start not in beside
    assert (beside[0].micro_batches, beside[0].interleaved) == (2, 1)
    assert beside[0].splits == start.splits


def test_a_batch_of_another_net_or_of_more_pes_has_no_plan(on_two: BatchAlternatives) -> None:
    start = next(on_two.searched()).choice
    assert on_two.plan(start)
    assert on_two.plan(replace(start, pes=4)) is None
    assert on_two.plan(replace(start, splits=start.splits[:-1])) is None


@pytest.mark.exhaustive
def test_a_build_takes_the_batch_that_was_found_without_a_search(
    on_two: BatchAlternatives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tuned.json"))
    monkeypatch.setattr("npukit.plan.planner.OBJECTIVES", {})
    choice = replace(next(on_two.searched()).choice, interleaved=2)
    board = load_board("pe-mesh")
    net = assign_engines(load_model(MODEL).net, with_core(plugins_of(board)))
    key = network_key(net, board, "throughput", 2)
    assert key != network_key(net, board, "latency", 2)
    Database({key: TuningRecord("digits", str(choice), 1, 2)}).save(tmp_path / "tuned.json")
    built = api.build(MODEL, output=tmp_path / "out", options=api.Options(objective="throughput", pes=2))
    assert built.plan().frames == 2 // choice.pes * 2
    assert api.validate(built.folder).passed
