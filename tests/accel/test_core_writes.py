"""Lines written into a state in place: exact on every shape and cut, predicted, the same from both assemblers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from accel.test_core_moves import BOARD, cut, run
from codegen.random_ops import Bundle
from helpers import first_of
from npukit.accel.core_writes import writes_of
from npukit.accel.cpu import Cpu
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net, State
from npukit.net.ops import Select
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

SHAPES = ((1, 8, 16, 64), (1, 3, 5, 7), (2, 1, 40, 130), (12, 33), (3, 9, 4))


def caches(shapes: tuple[tuple[int, ...], ...] = SHAPES) -> Net:
    """States of these shapes, each with inputs for a line and for its position."""
    bundle = Bundle(np.random.default_rng(4))
    states = list[State]()
    for shape in shapes:
        slot, alike = bundle.tensor((*(1 for _ in shape[:-2]), shape[-2], 1), None, "bool"), bundle.quantization()
        bundle.inputs.append(slot)
        line, held = bundle.activation((*shape[:-2], 1, shape[-1]), alike), bundle.tensor(shape, alike)
        bundle.add(Select(), slot, line, held, quantization=alike)
        states.append(State(held, bundle.ops[-1].output, bundle.int8(shape)))
    return check_net(replace(bundle.net(), states=tuple(states)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([1, 4]))
def test_lines_are_written_exactly_however_the_state_is_cut(pes: int, tmp_path: Path) -> None:
    net = caches()
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    assert set(planned.kernels.values()) == {"written in place"}
    assert run(net, planned, tmp_path).layers


def test_one_line_takes_its_bytes_and_a_look_at_each_other() -> None:
    net = caches(((1, 1, 16, 64),))
    (op,) = net.ops
    found = writes_of(net, op)
    assert found is not None
    assert found.cost(net, op, Box.whole((1, 1, 16, 64))).cycles < 64 + 16 * 11
    assert Cpu().cost(net, op, Box.whole((1, 1, 16, 64))).cycles > 9000, "in C all of it is written"


def test_both_assemblers_make_the_same_bytes() -> None:
    net = caches()
    for op in net.ops:
        found = writes_of(net, op)
        assert found is not None
        for code in found.codes(net, op, Box.whole(net.tensor(op.output).shape)):
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)


def test_what_is_no_line_of_a_state_is_c() -> None:
    bundle = Bundle(np.random.default_rng(4))
    alike = bundle.quantization()
    for condition in ((1, 5, 7), (1, 1, 7)):
        slot = bundle.tensor(condition, None, "bool")
        bundle.inputs.append(slot)
        bundle.add(Select(), slot, *(bundle.activation((1, 5, 7), alike) for _ in range(2)), quantization=alike)
    net = bundle.net()
    kept = replace(net, states=(State(net.ops[0].inputs[2], net.ops[0].output, bundle.int8((1, 5, 7))),))
    assert [writes_of(kept, op) for op in net.ops] == [None, None]
