"""The generated C stays valid for any tensor names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from codegen.host import build
from codegen.random_ops import random_inputs
from net.small_nets import op_net, quantized
from npukit.accel.cpu import Cpu
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.codegen.names import Names, c_identifier, c_string, comment_text
from npukit.net.net import Net, Op
from npukit.net.ops import Requantize
from npukit.net.reference import run_reference
from npukit.plan.planner import plan_network

HOSTILE = '*/ int x; "\\ %s ??/ /* main \n#error\u202e'


@given(st.text(max_size=80))
def test_identifiers_are_identifiers(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*_\d+", c_identifier(name))


@given(st.lists(st.text(max_size=60), max_size=20))
def test_every_name_gets_its_own(names: list[str]) -> None:
    given_names = Names()
    assert len({given_names.identifier(name) for name in names}) == len(names)


@given(st.text())
def test_no_text_ends_a_comment(text: str) -> None:
    shown = comment_text(text)
    assert "*/" not in shown
    assert "/*" not in shown
    assert shown.isprintable()


@given(st.text())
def test_no_text_ends_a_string(text: str) -> None:
    literal = c_string(text)
    assert re.fullmatch(r'"(?:[ -!#-\[\]-~]|\\[0-7]{3})*"', literal)
    assert "??" not in literal


def test_a_net_of_hostile_names_compiles_and_runs(tmp_path: Path) -> None:
    board, engines = load_board("mps2-an386"), {"cpu": Cpu()}
    net = _renamed(op_net(Requantize(), [quantized("in", (1, 9), 0.5)], quantized("out", (1, 9), 0.7, 3), {}))
    (sources,) = generate(net, plan_network(net, board, engines, max_pes=1), board, engines, bytes(16))
    program = build(sources, tmp_path)
    inputs = random_inputs(net, np.random.default_rng(5))
    assert program.run(inputs) == [run_reference(net, inputs)[0].tobytes()]
    assert program.layer_names == [net.outputs[0]]
    assert program.description.model == net.name.encode()


def _renamed(net: Net) -> Net:
    names = {name: f"{HOSTILE} {name}" for name in net.tensors}
    (op,) = net.ops
    tensors = {names[name]: quantized(names[name], t.shape, 0.5, 1) for name, t in net.tensors.items()}
    inputs, outputs = (tuple(names[name] for name in each) for each in (op.inputs, op.outputs))
    return Net(HOSTILE, inputs, outputs, (Op("int", op.attributes, inputs, outputs),), tensors)
