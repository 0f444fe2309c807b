"""An addition in place: the sum reuses the memory of an operand with no later reader."""

from __future__ import annotations

from npukit.accel.engines import assign_engines
from npukit.board.board import load_board
from npukit.net.net import Net
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.batch.weight_tiles import StreamWeights
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph, aliases
from npukit.plan.tensors.problem import Problem
from plan.batch.test_batch_emitter import assert_exact
from plan.engines import engines
from plan.networks import Builder

BOARD = load_board("pe-mesh")
ENGINES = engines(BOARD)


def residual(*, read_again: bool) -> Net:
    """Two convolutions in sequence, whose result is added to their input."""
    b = Builder("residual")
    x = b.conv(b.input(1, 16, 16, 16), 64, 1)
    y = b.add(b.conv(b.conv(x, 16, 1), 64, 1), x)
    z = b.conv(y, 16, 1)
    return assign_engines(b.net(z, b.conv(x, 16, 1)) if read_again else b.net(z), ENGINES)


def in_rows(net: Net) -> Assignment:
    graph = Graph(net)
    cuts = ((op, grid(graph.shape(op.output), (1, 2, 1, 1), (1, 1, 1, 1))) for op in graph.ops)
    return {op.name: tuple(map(Tile, (1, 2), to_boxes(cut))) for op, cut in cuts}


def of_weight_tiles(net: Net, *, low_memory: bool) -> Plan:
    """A plan with constants streamed in slices of few channels."""
    wanted = Batch(
        (in_rows(net),),
        1,
        2,
        StreamWeights(frozenset(op.name for op in net.ops), 1024),
        low_memory=low_memory,
    )
    plan = emit_batch(Problem(Graph(net), BOARD, ENGINES), wanted)
    assert_exact(net, plan, rounds=2)
    return plan


def operand_and_sum(net: Net, plan: Plan) -> list[tuple[int, int]]:
    """Offsets of the operand and of the sum, on each PE with a part of the sum, in each frame."""
    (op,) = (op for op in net.ops if op.parts[-1].kind == "add")
    found = []
    for pe in plan.pes:
        for step in (step for step in pe.computes() if step.op == op.name):
            operand = next(view for view in step.inputs if view.box == step.output.box)
            found.append((pe.buffer(operand.buffer).offset, pe.buffer(step.output.buffer).offset))
    return found


def test_the_sum_lies_where_the_operand_lay_also_piece_by_piece() -> None:
    net = residual(read_again=False)
    assert [name for names in aliases(Graph(net), ENGINES).values() for name in names]
    for low_memory in (False, True):
        places = operand_and_sum(net, of_weight_tiles(net, low_memory=low_memory))
        assert len(places) > 4, "in pieces"
        assert all(operand == output for operand, output in places)


def test_an_operand_that_is_read_again_keeps_its_place() -> None:
    net = residual(read_again=True)
    assert not any(aliases(Graph(net), ENGINES).values())
    places = operand_and_sum(net, of_weight_tiles(net, low_memory=False))
    assert places
    assert all(operand != output for operand, output in places)


def test_a_sum_may_be_cut_otherwise_than_its_operand() -> None:
    net = residual(read_again=False)
    (op,) = (op for op in net.ops if op.parts[-1].kind == "add")
    for cut in ((1, 1, 2, 1), (1, 1, 1, 2), (1, 1, 1, 1)):
        boxes = to_boxes(grid(net.tensor(op.output).shape, cut, (1, 1, 1, 1)))
        group = {**in_rows(net), op.name: tuple(map(Tile, (2, 1), boxes))}
        for low_memory in (False, True):
            assert_exact(
                net, emit_batch(Problem(Graph(net), BOARD, ENGINES), Batch((group,), low_memory=low_memory)), rounds=2
            )
