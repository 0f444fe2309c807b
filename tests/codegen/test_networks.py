"""Whole networks as C on the host: every layer and output equals the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from codegen.host import build
from helpers import models
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.frontend.models import load_net_from_model
from npukit.net.reference import evaluate
from npukit.plan.planner import plan_network

CASES = 2
BUILD_ID = bytes(range(16))


@pytest.mark.parametrize("engines_from", ["mps2-an386", "pe-mesh"])
@pytest.mark.parametrize("model", ["kws_ref_model", "pretrainedResnet_quant", "ad01_int8"])
def test_every_layer_equals_the_reference(model: str, engines_from: str, tmp_path: Path) -> None:
    """The board has no MAC array: the driver's stand-in computes the commands."""
    board = load_board("mps2-an386")
    engines = engines_of(load_board(engines_from))
    net = assign_engines(load_net_from_model(models() / f"{model}.tflite"), engines)
    (sources,) = generate(net, plan_network(net, board, engines, max_pes=1), board, engines, BUILD_ID)
    program = build(sources, tmp_path)
    assert bytes(program.description.build_id) == BUILD_ID
    given = np.load(models() / f"{model}.npz")["in0"][:CASES]
    for case in given:
        values = evaluate(net, [case])
        left: dict[str, bytes] = {}

        def observe(layer: int, left: dict[str, bytes] = left) -> None:
            left[program.layer_names[layer]] = program.layer(layer)

        observed = program.run([case], observe)
        assert left == {name: values[name].tobytes() for name in program.layer_names}
        assert observed == program.run([case]) == [values[name].tobytes() for name in net.outputs]
    assert set(program.layer_names) == {op.output for op in net.ops if op.kind != "reshape"}
