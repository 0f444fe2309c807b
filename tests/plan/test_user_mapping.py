"""A user's mapping: checked, completed, computed exactly; errors name the fault."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import DIGITS
from npukit import api
from npukit.board.board import Board, load_board
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.examples import example
from npukit.net.reference.interpreter import run_reference
from npukit.plan import user_mapping as pins
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from oracles.plan_execution import Execution
from plan.engines import engines
from plan.networks import small_net

BOARD = load_board("pe-mesh")
NET = small_net()
GRAPH = Graph(NET)
FIRST = GRAPH.ops[0].name


def planned(folder: Path, text: str, board: Board = BOARD, max_pes: int | None = None) -> Plan:
    path = folder / "plan.toml"
    path.write_text(text)
    problem = Problem(GRAPH, board, engines(board), max_pes=max_pes)
    return plan_around(problem, pins.read_pins(str(path), GRAPH, board)).plan


def pes_of(plan: Plan, op: str) -> list[int]:
    return [pe.pe for pe in plan.pes for step in pe.computes() if step.op == op]


def assert_exact(plan: Plan) -> None:
    inputs = [np.random.default_rng(3).integers(-128, 128, NET.tensor(NET.inputs[0]).shape, np.int8)]
    for got, want in zip(Execution(NET, plan).run(inputs), run_reference(NET, inputs), strict=True):
        assert np.array_equal(got, want)


def test_an_op_goes_where_it_is_pinned_and_the_rest_is_completed(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"[ops.{FIRST}]\npes = [5, 6, 9, 10]\nparts = [1, 2, 2, 1]\n")
    assert pes_of(plan, FIRST) == [5, 6, 9, 10]
    assert {pe.pe for pe in plan.pes} <= {0, 5, 6, 9, 10}
    assert_exact(plan)


def test_the_rest_may_have_other_pes(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"[ops.{FIRST}]\npes = [13]\n", max_pes=4)
    assert pes_of(plan, FIRST) == [13]
    assert {pe.pe for pe in plan.pes} <= {0, 1, 2, 3, 13}
    assert_exact(plan)


def test_json_says_the_same_as_toml(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"ops": {FIRST: {"pes": [5, 6]}}}))
    assert [tile.pe for tile in pins.read_pins(str(path), GRAPH, BOARD)[FIRST]] == [5, 6]


WRONG = {
    "pes = [5, 5]": "PE 5 has two tiles",
    "pes = [99]": "PE 99 is dead, or not on the board",
    "pes = [1, 2]\nparts = [1, 3, 1, 1]": "cut into 3 parts for 2 PEs",
    "pes = [1]\nparts = [1, 1]": "do not cut its output",
    "tiles = [{ pe = 1, start = [0, 0, 0, 0], stop = [1, 12, 12, 8] }]": "elements of .* are on no PE",
    "tiles = [{ pe = 1, start = [0, 0], stop = [1, 12] }]": "PE 1 has not the 4 axes",
    "pes = [1]\nturbo = true": "unknown key: .*turbo",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(NpukitError, match=WRONG[text]) as caught:
        planned(tmp_path, f"[ops.{FIRST}]\n{text}\n")
    assert FIRST in caught.value.message


def test_an_op_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(NpukitError, match="no op nothing that computes"):
        planned(tmp_path, "[ops.nothing]\npes = [1]\n")


def test_an_op_is_not_cut_where_it_cannot_be(tmp_path: Path) -> None:
    """The last axis of top-k cannot be cut: every result depends on a whole row."""
    graph = Graph(example("top_k"))
    (tmp_path / "plan.toml").write_text(f"[ops.{graph.ops[-1].name}]\npes = [1, 2]\nparts = [1, 1, 1, 2]\n")
    with pytest.raises(NpukitError, match=r"the tile of PE 1 is cut along axis 3, which top_k"):
        pins.read_pins(str(tmp_path / "plan.toml"), graph, BOARD)


def one_after_the_other(graph: Graph, board: Board, pes: Sequence[int]) -> Mapping[str, Sequence[Tile]]:
    assert board is BOARD
    return {
        op.name: [Tile(pes[index % len(pes)], Box.whole(graph.shape(op.output)))] for index, op in enumerate(graph.ops)
    }


def careless(graph: Graph, board: Board, pes: Sequence[int]) -> Mapping[str, Sequence[Tile]]:
    return {graph.ops[0].name: [Tile(pes[10_000], Box.whole(()))]}


@pytest.mark.parametrize(
    ("place", "told"),
    [("careless", r"raised IndexError at .*test_user_mapping\.py:\d+: "), ("missing", "raised AttributeError at ")],
)
def test_a_mapper_that_raises_is_named(monkeypatch: pytest.MonkeyPatch, place: str, told: str) -> None:
    point = EntryPoint("greedy", f"{__name__}:{place}", pins.GROUP)
    monkeypatch.setattr(pins, "entry_points", lambda group: [point])
    with pytest.raises(NpukitError, match=rf"^mapper greedy {told}"):
        pins.read_pins("greedy", GRAPH, BOARD)


def test_a_mapper_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("greedy", f"{__name__}:one_after_the_other", pins.GROUP)
    monkeypatch.setattr(pins, "entry_points", lambda group: [point] if group == pins.GROUP else [])
    found = pins.read_pins("greedy", GRAPH, BOARD)
    plan = plan_around(Problem(GRAPH, BOARD, engines(BOARD)), found).plan
    assert len(plan.pes) == len(GRAPH.ops)
    assert_exact(plan)
    with pytest.raises(NpukitError, match=r"nor a mapper that is installed .greedy."):
        pins.read_pins("greedier", GRAPH, BOARD)


def test_a_plan_takes_no_more_pes_than_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("[ops.conv2d_0]\npes = [5, 6]\n")
    with pytest.raises(NpukitError, match="takes 3 PEs, the root's included, and --pes allows 2"):
        api.fit(DIGITS / "digits_int8.tflite", options=api.Options(plan=str(path), pes=2))
    assert api.fit(DIGITS / "digits_int8.tflite", options=api.Options(plan=str(path), pes=3)).pes_used <= 3


def test_an_op_or_key_that_a_plan_names_wrong_is_told(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("[ops.conv2d0]\npes = [5]\n")
    with pytest.raises(NpukitError, match="no op conv2d0") as op:
        api.fit(DIGITS / "digits_int8.tflite", options=api.Options(plan=str(path)))
    assert op.value.tries[0] == "did you mean conv2d_0?"
    path.write_text("[ops.conv2d_0]\npe = [5]\n")
    with pytest.raises(NpukitError, match=r"has an unknown key: ops\.conv2d_0\.pe"):
        api.fit(DIGITS / "digits_int8.tflite", options=api.Options(plan=str(path)))
