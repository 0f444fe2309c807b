"""The comparison finds planted faults, tells listed faults and refusals apart from others, and repeats itself."""

from __future__ import annotations

import fnmatch
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="ONNX Runtime, an oracle, is not installed")
pytest.importorskip("ai_edge_litert", reason="LiteRT, an oracle, is not installed")

from differential import evidence, onnx_networks, onnx_ops, tflite_networks
from differential.builds import differing
from differential.judge import EQUAL, FAULT, LISTED, REFUSED, WITHIN, Verdict, judged, read, taken
from differential.networks import Network, random_of
from differential.report import PAGE, paragraph, recorded
from differential.run import Item, Listed, cells, listed, reason, totals, verdicts
from frontend import onnx_nodes
from npukit.errors import NpukitError
from npukit.host.parallel import cores
from npukit.net.ops.table import SPECS

ADD = "tflite/int8/add"


def network(name: str, seed: int = 0) -> Network:
    return cells()[name](random_of(name, seed))


def one(name: str, folder: Path, known: list[Listed] | None = None) -> Verdict:
    (verdict,) = verdicts([Item(name, 0, cells()[name], folder)], known or [])
    return verdict


def planted(kind: str) -> Any:
    """The reference of a kind with another first value."""
    right = SPECS[kind].reference

    def wrong(*given: Any) -> np.ndarray:
        result = right(*given).copy()
        result.flat[0] ^= 1
        return result

    return patch.dict(SPECS, {kind: replace(SPECS[kind], reference=wrong)})


def test_a_planted_fault_is_found_and_saved(tmp_path: Path) -> None:
    assert one(ADD, tmp_path).outcome == EQUAL
    with planted("add"):
        verdict = one(ADD, tmp_path)
    assert verdict.outcome == FAULT
    assert "differ by up to" in verdict.said
    saved = tmp_path / "0-tflite-int8-add"
    assert (saved / "model.tflite").read_bytes() == network(ADD).data
    assert len(np.load(saved / "inputs.npz")) == len(network(ADD).cases[0])


def test_a_listed_fault_is_told_as_listed(tmp_path: Path) -> None:
    with planted("add"):
        found = [
            one(ADD, tmp_path, [Listed(names, said, "planted")]) for names, said in ((ADD, "differ"), (ADD, "crash"))
        ]
    assert [(each.outcome, each.said == "planted") for each in found] == [(LISTED, True), (FAULT, False)]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (NpukitError("op ADD (t3): it does too much"), REFUSED),
        (NpukitError("something is wrong"), FAULT),
        (IndexError("beyond"), FAULT),
    ],
    ids=["named", "not named", "crash"],
)
def test_a_refusal_names_an_op_and_anything_else_is_a_fault(error: Exception, outcome: str, tmp_path: Path) -> None:
    with patch("differential.judge.load_model", side_effect=error):
        assert one(ADD, tmp_path).outcome == outcome


@pytest.mark.skipif(cores() < 2, reason="on one core the networks are judged in this process")
def test_a_network_that_ends_its_process_is_a_fault_and_the_others_go_on(tmp_path: Path) -> None:
    items = [Item(name, 0, cells()[name], tmp_path) for name in (ADD, "tflite/int8/sub")]
    items.insert(1, Item("tflite/int8/dead", 0, lambda random: os._exit(3), tmp_path))
    assert [each.outcome for each in verdicts(items, [])] == [EQUAL, FAULT, EQUAL]


@pytest.mark.parametrize("name", [ADD, "onnx/qdq-int8/conv", "onnx/dynamic/gemm", "onnx/calibrated/softmax"])
def test_a_seed_gives_the_same_network_again(name: str) -> None:
    first, again, other = network(name), network(name), network(name, 1)
    assert first.data == again.data != other.data
    assert all(np.array_equal(*pair) for pair in zip(first.cases[0], again.cases[0], strict=True))


@pytest.mark.parametrize("name", ["onnx/qdq-uint8/conv", "onnx/qoperator-int8/add", "tflite/float/softmax"])
def test_a_network_of_each_form_is_judged(name: str, tmp_path: Path) -> None:
    verdict = judged(network(name), 0, tmp_path)
    assert verdict.outcome not in (FAULT, REFUSED), verdict.said


@pytest.mark.exhaustive
def test_a_fault_of_firmware_is_found_on_the_emulator(tmp_path: Path) -> None:
    made = [network(name) for name in (ADD, "tflite/int8/sub")]
    nets = [read(each, tmp_path) for each in made]
    given = [(net, taken(net, each.cases[0])) for net, each in zip(nets, made, strict=True)]
    assert differing(given, tmp_path / "right") == {}
    with planted("add"):
        assert set(differing(given, tmp_path / "wrong")) == {0}


def test_reasons_leave_out_names_and_numbers() -> None:
    said = "model.onnx: node 1 (Celu_1) is Celu, which npukit does not read yet"
    assert reason(said) == reason(said.replace("1", "22"))
    assert totals([Verdict("a", 0, REFUSED, said)] * 3).refusals == {reason(said): 3}


def test_outcomes_are_counted_by_op_and_class() -> None:
    found = totals(
        [
            Verdict("tflite/int8/add", 0, EQUAL, ops=("ADD",), kinds=("add",)),
            Verdict("tflite/int8/add", 1, WITHIN, ops=("ADD", "SUB"), kinds=("add", "subtract")),
            Verdict("tflite/float/add", 0, EQUAL, ops=("ADD",), kinds=("tvm_code",)),
            Verdict("tflite/uint8/add", 0, REFUSED, "op ADD is new", ops=("ADD",), kinds=("add",)),
        ]
    )
    assert found.ops == {
        "tflite": {"ADD": {"int8": {EQUAL: 1, WITHIN: 1}, "float": {EQUAL: 1}}, "SUB": {"int8": {WITHIN: 1}}}
    }
    assert found.kinds == {"tflite": {"ADD": ["add"]}}
    figures = {"built": 0, "ops": found.ops, "kinds": found.kinds}
    assert json.loads(evidence.text(figures)) == figures


def test_the_ops_of_a_file_are_read_from_the_file() -> None:
    assert "ADD" in evidence.ops_of("tflite", network(ADD).data)
    assert "Conv" in evidence.ops_of("onnx", network("onnx/qdq-int8-int4/conv").data)
    assert not {*evidence.ops_of("onnx", network("onnx/qdq-int8/conv").data)} & evidence.ENDS


@pytest.mark.parametrize("name", ["tflite/int8-int4/fully_connected", "onnx/qdq-int8-int4/gemm"])
def test_weights_of_four_bits_are_judged(name: str, tmp_path: Path) -> None:
    verdict = judged(network(name), 0, tmp_path)
    assert verdict.outcome in (EQUAL, WITHIN), verdict.said
    assert verdict.net
    assert min(np.abs(each.astype(int)).max() for each in verdict.net.constants.values()) <= 8


OF_INTEGERS = {
    *("BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Constant"),
    *("ConstantOfShape", "EyeLike", "IsInf", "IsNaN", "NonMaxSuppression", "NonZero", "Shape", "Size", "Unique"),
}
"""Ops of integers, booleans and shapes, in tests of the frontend."""
ELSEWHERE = {*OF_INTEGERS, "BlackmanWindow", "HammingWindow", "HannWindow", "MatMulNBits", "MaxRoiPool"}


def test_every_op_of_onnx_is_in_a_network_or_in_a_test_of_the_standard() -> None:
    made = {test.kind for test in onnx_nodes.claimed_tests()}
    for maker in onnx_ops.MAKERS.values():
        for seed in range(6):
            graph = onnx_networks.Floats(np.random.default_rng(seed))
            maker(graph)
            made |= {node.op_type for step in graph.steps for node in step.nodes}
    claimed = {name for spec in SPECS.values() for name in spec.names.onnx if not name.startswith(("Q", "Dynamic"))}
    assert claimed - made == ELSEWHERE


def test_every_fault_of_the_list_is_of_networks() -> None:
    names = [name for name, _ in (*tflite_networks.cells(), *onnx_networks.cells())]
    own = [each.networks for each in listed() if not each.networks.startswith("pytorch")]
    assert not [pattern for pattern in own if not fnmatch.filter(names, pattern)]


def test_the_page_has_the_figures_of_the_last_run() -> None:
    assert paragraph(recorded()) in PAGE.read_text(encoding="utf-8")
