"""The core's kernels, compiled for this machine, equal the reference on random ops of every kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codegen.host import build
from codegen.random_ops import MAKERS, Bundle, random_inputs
from end_to_end.builds import DIGITS
from npukit.accel.cpu import Cpu
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.codegen.tir.kernels import KERNELS
from npukit.net.box import Box
from npukit.net.c_code.rows import Steps, stated_rows
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.ops.table import SPECS
from npukit.net.receptive import cuttable_axes, may_be_one, needs
from npukit.net.reference import evaluate
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Compute, Plan, View
from npukit.plan.planner import plan_network
from npukit.quantize.models import load_model

Given = Callable[[Net, np.random.Generator], list[np.ndarray]]

OPS_OF_EACH_KIND = 8
FRAMES = 3
BOARD = load_board("mps2-an386")


def test_every_kind_has_a_kernel_and_a_test() -> None:
    assert set(KERNELS) == set(MAKERS) == set(SPECS) - {"reshape", "tvm_code"}


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_random_ops_equal_the_reference(kind: str, tmp_path: Path) -> None:
    net = _random_net(kind, seed=1)
    _compare(net, _whole(net), tmp_path, seed=2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", sorted(set(MAKERS)))
def test_tiles_equal_the_reference(kind: str, tmp_path: Path) -> None:
    """Every op cut in two along each axis along which the planner cuts."""
    net = _random_net(kind, seed=3)
    plan = _cut(net, _whole(net))
    assert len(plan.pes[0].steps) > len(net.ops)
    _compare(net, plan, tmp_path, seed=4)


@pytest.mark.exhaustive
def test_tiles_of_code_that_tvm_makes_equal_the_reference(tmp_path: Path) -> None:
    """Layers in float, cut in two along their rows, but for the softmax, whose loops are several."""
    net = load_model(DIGITS / "digits_float.onnx", in_float=True).net
    net = replace(net, ops=net.ops[:-1], outputs=tuple(op.output for op in net.ops[:-1]))
    plan = _cut(net, _whole(net))
    assert len(plan.pes[0].steps) > len(net.ops) + 4
    _compare(net, plan, tmp_path, seed=5, given=_usual_numbers)


def test_a_whole_result_of_a_part_of_what_comes_in_equals_the_reference(tmp_path: Path) -> None:
    """What comes in is the second half alone, as every state behind the first of a recurrent network."""
    code = "  for (int32_t i1 = 0; i1 < 4; ++i1) {\n    output[i1] = p0[(i1 + 4)];\n  }\n"
    tensors = {name: Tensor(name, (1, size), "float32") for name, size in (("x", 8), ("y", 4))}
    rows = stated_rows(Steps(1, ((1, 1, 4),)), (1, 4), [(1, 8)])
    net = Net("half", ("x",), ("y",), (Op("y", TvmCode("half", code, rows=rows), ("x",), ("y",)),), tensors, {})
    _compare(net, _whole(net), tmp_path, seed=6, given=_usual_numbers)


def _random_net(kind: str, seed: int, *, rounds_once: bool = False) -> Net:
    bundle = Bundle(np.random.default_rng(seed), rounds_once=rounds_once)
    for _ in range(OPS_OF_EACH_KIND):
        MAKERS[kind](bundle)
    return check_net(bundle.net())


def _whole(net: Net) -> Plan:
    return plan_network(net, BOARD, {"cpu": Cpu()}, max_pes=1)


def _cut(net: Net, plan: Plan) -> Plan:
    (pe,) = plan.pes
    steps = [tile for step in pe.computes() for tile in _tiles(net, step)]
    return replace(plan, pes=(replace(pe, steps=tuple(steps)),))


def _tiles(net: Net, step: Compute) -> list[Compute]:
    op = next(op for op in net.ops if op.name == step.op)
    boxes = [step.output.box]
    for axis in cuttable_axes(net, op):
        boxes = [part for box in boxes for part in _parts(net, op, box, axis)]
    return [_tile(net, step, box) for box in boxes]


def _parts(net: Net, op: Op, box: Box, axis: int) -> list[Box]:
    """Halves; where a tile must have one position of the axis before, those of the first and all of the others."""
    halves = _halves(box, axis)
    if all(may_be_one(net, op, half) for half in halves):
        return halves
    first, *others = _cut_at(box, axis - 1, box.start[axis - 1] + 1)
    return [*_halves(first, axis), *others]


def _halves(box: Box, axis: int) -> list[Box]:
    return _cut_at(box, axis, (box.start[axis] + box.stop[axis] + 1) // 2)


def _cut_at(box: Box, axis: int, place: int) -> list[Box]:
    if place == box.stop[axis]:
        return [box]
    stop = (*box.stop[:axis], place, *box.stop[axis + 1 :])
    start = (*box.start[:axis], place, *box.start[axis + 1 :])
    return [Box(box.start, stop), Box(start, box.stop)]


def _tile(net: Net, step: Compute, box: Box) -> Compute:
    op = next(op for op in net.ops if op.name == step.op)
    views = zip(step.inputs, needs(net, op, box), strict=True)
    return replace(step, output=View(step.output.buffer, box), inputs=tuple(View(v.buffer, b) for v, b in views))


def _usual_numbers(net: Net, random: np.random.Generator) -> list[np.ndarray]:
    return [random.standard_normal(net.tensor(name).shape).astype(np.float32) for name in net.inputs]


def _compare(net: Net, plan: Plan, folder: Path, seed: int, given: Given = random_inputs) -> None:
    (sources,) = generate(net, plan, BOARD, {"cpu": Cpu()}, bytes(16))
    program, random = build(sources, folder), np.random.default_rng(seed)
    for _ in range(FRAMES):
        inputs = given(net, random)
        values = evaluate(net, inputs)
        wrong = [
            (op.name, op.attributes)
            for op, got in zip(net.ops, program.run(inputs), strict=True)
            if got != np.ascontiguousarray(values[op.output]).tobytes()
        ]
        assert not wrong
