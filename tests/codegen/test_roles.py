"""PEs with the same code share a role: equal bytes are constants in C, differing bytes are each PE's own data."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from helpers import shallow
from net.small_nets import op_net, quantized
from net.test_rows import OWN, net_of
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.codegen.generate import generate, own_data
from npukit.codegen.program import Program, gather
from npukit.codegen.roles import Role, roles_of
from npukit.codegen.sources import PeData
from npukit.codegen.tir.kernels import kernel, kernels_as_c
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Add, Conv2d, TvmCode
from npukit.net.passes.numbers import with_numbers_as_constants
from npukit.net.tensor import Tensor
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.batch_emitter import emit_batch
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_network
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.networks import Builder
from plan.planning import plan_with_pins

BOARD = load_board("pe-mesh")
ENGINES = engines_of(BOARD)
ROOM = 100_000
CORE_ALONE = {CORE: ENGINES[CORE]}


def net() -> Net:
    weights = np.random.default_rng(12).integers(-127, 128, (64, 3, 3, 32)).astype(np.int8)
    output = quantized("y", (1, 24, 24, 64), 0.5)
    filters = quantized("w", weights.shape, 0.01)
    made = op_net(Conv2d(padding=(1, 1, 1, 1)), [quantized("x", (1, 24, 24, 32), 0.1, 4)], output, {filters: weights})
    return assign_engines(made, ENGINES)


def planned() -> Plan:
    return plan_network(net(), BOARD, ENGINES, max_pes=8)


def programs(plan: Plan) -> list[Program]:
    return [gather(net(), plan, pe, ENGINES) for pe in plan.pes]


def workers(room: int = ROOM) -> list[Role]:
    return [role for role in roles_of(programs(planned()), lambda _: room) if not role.first.is_root]


@pytest.mark.exhaustive
def test_chains_of_commands_may_be_long() -> None:
    b = Builder("long")
    flow = b.input(1, 1, 1, 4)
    for _ in range(250):
        flow = b.conv(flow, 4)
    made = b.net(flow)
    plan = plan_network(made, BOARD, ENGINES, max_pes=1)
    with shallow():
        (sources,) = generate(made, plan, BOARD, ENGINES, bytes(16))
    assert sources.files["constants.c"].count(".next =") == 249


def test_every_pe_is_in_one_role_and_the_root_alone_in_its_own() -> None:
    plan = planned()
    roles = roles_of(programs(plan), lambda _: ROOM)
    assert sorted(pe for role in roles for pe in role.pes) == [pe.pe for pe in plan.pes]
    assert roles[0].pes == (plan.pes[0].pe,)
    assert not roles[0].own
    assert len(roles) == 2


def test_pes_that_compute_like_boxes_elsewhere_in_a_tensor_share_a_kernel() -> None:
    """The C of an addition does not depend on the tile's position."""
    x, y = quantized("x", (1, 8, 4, 16), 0.1, 4), quantized("y", (1, 8, 4, 16), 0.2)
    made = assign_engines(op_net(Add(), [x, y], quantized("z", (1, 8, 4, 16), 0.3), {}), CORE_ALONE)
    graph = Graph(made)
    (op,) = graph.ops
    boxes = to_boxes(grid(graph.shape(op.output), (1, 4, 1, 2), (1, 1, 1, 1)))
    plan = plan_with_pins(Problem(graph, BOARD, CORE_ALONE), {op.name: tuple(map(Tile, range(8), boxes))})
    others = [gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]]
    assert len(roles_of(others, lambda _: ROOM)) == 1
    tiles = [part for program in others for part in program.parts]
    (function,) = kernels_as_c([kernel(part.tile, part.lowered.constants) for part in tiles])[0]
    assert "+" in function.body


def test_pes_that_make_other_rows_by_c_share_it() -> None:
    """The C counts rows from the first row of each tile."""
    made = net_of("output[(y * 4) + x] = p0[(y * 4) + x];", OWN, OWN)
    graph = Graph(made)
    (op,) = graph.ops
    boxes = to_boxes(grid(graph.shape(op.output), (1, 3, 1, 1), (1, 1, 1, 1)))
    plan = plan_with_pins(Problem(graph, BOARD, CORE_ALONE), {op.name: tuple(map(Tile, range(3), boxes))})
    (role,) = roles_of([gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]], lambda _: ROOM)
    assert len(role.pes) == 2


def test_pes_of_other_layers_share_a_program_if_their_c_is_one() -> None:
    """Two layers with different scales, stored as each PE's own data."""
    made = assign_engines(with_numbers_as_constants(scaled_by("0.5", "0.25")), CORE_ALONE)
    tiles = {op.name: (Tile(1 + place, Box((0,), (8,))),) for place, op in enumerate(made.ops)}
    plan = plan_with_pins(Problem(Graph(made), BOARD, CORE_ALONE), tiles)
    (role,) = roles_of([gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]], lambda _: ROOM)
    assert len(role.pes) == 2
    scales = [dict(own_of(role, pe).arrays) for pe in role.pes]
    assert [np.float32(each).tobytes() in found.values() for each, found in zip((0.5, 0.25), scales, strict=True)] == [
        True,
        True,
    ]


def scaled_by(*scales: str) -> Net:
    """A tensor times each of these factors."""
    code = "  for (int32_t i = 0; i < 8; ++i) {{\n    output[i] = (p0[i] * {}f);\n  }}\n"
    ops = [Op(f"o{scale[2:]}", TvmCode("scaled", code.format(scale)), ("x",), (f"y{scale[2:]}",)) for scale in scales]
    tensors = [Tensor(name, (8,), "float32") for name in ("x", *(op.output for op in ops))]
    outputs = tuple(op.output for op in ops)
    return Net("scaled", ("x",), outputs, tuple(ops), {each.name: each for each in tensors})


def test_bytes_that_all_pes_have_are_constants_and_others_are_data() -> None:
    """Cut by rows only, weights and commands are the same on all PEs; descriptors differ."""
    graph = Graph(net())
    (op,) = graph.ops
    boxes = to_boxes(grid(graph.shape(op.output), (1, 4, 1, 1), (1, 1, 1, 1)))
    rows = plan_with_pins(Problem(graph, BOARD, ENGINES), {op.name: tuple(map(Tile, range(4), boxes))})
    middle = [program for program in programs(rows) if program.pe in (1, 2)]
    (role,) = roles_of(middle, lambda _: ROOM)
    shared = {member.symbol for member in role.constants.members}
    assert {symbol.rpartition("_")[2] for symbol in shared} == {"weights", "parameters", "command"}
    for own in role.own:
        assert {row.struct for row in own_of(role, own.program.pe).rows} == {"noc_descriptor", ""}


def own_of(role: Role, pe: int) -> PeData:
    return next(data for data in own_data(role).pes if data.pe == pe)


def test_no_two_parts_of_a_pe_s_data_overlap() -> None:
    (role,) = workers()
    for own in role.own:
        start, words = own.words
        spans = [(start, start + 4 * len(words)), *((o, o + member.bytes) for o, member in own.parts)]
        spans.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
        assert spans[-1][1] <= role.own_bytes
        assert all(offset % member.align == 0 for offset, member in own.parts)


def test_pes_whose_data_would_not_fit_together_are_roles_of_their_own() -> None:
    sizes = [program.activation_bytes for program in programs(planned()) if not program.is_root]
    (whole,) = workers()
    least = max(sizes) + 30_000
    assert len(workers(least)) == 1
    assert len(workers(max(sizes))) > 1
    assert sorted(pe for role in workers(max(sizes)) for pe in role.pes) == list(whole.pes)


def test_weights_that_several_frames_use_are_counted_once() -> None:
    whole = Box.whole((1, 24, 24, 64))
    groups = tuple({op.name: (Tile(pe, whole),) for op in net().ops} for pe in range(3))
    plan = emit_batch(Problem(Graph(net()), BOARD, ENGINES), Batch(groups, 1, 3))
    made = [gather(net(), plan, pe, ENGINES) for pe in plan.pes]
    weights = sum(value.nbytes for value in net().constants.values())
    room = max(program.activation_bytes for program in made) + 2 * weights
    assert len(made[1].arrays) > len({array.values.tobytes() for array in made[1].arrays})
    assert len(roles_of(made[1:], lambda _: room)) == 1


def test_what_is_generated_does_not_depend_on_what_else_is_alike() -> None:
    """A changed weight of one PE changes own data, not the programs of other PEs."""
    plan = planned()
    made, again = (generate(net(), plan, BOARD, ENGINES, bytes(16)) for _ in range(2))
    assert made == again
    (role,) = workers()
    changed = list(role.programs)
    array = changed[0].arrays[0]
    changed[0] = replace(changed[0], arrays=(replace(array, values=array.values + np.int8(1)), *changed[0].arrays[1:]))
    (apart,) = roles_of(changed, lambda _: ROOM)
    assert array.symbol not in {member.symbol for member in apart.constants.members}
    assert all(any(array.symbol == member.symbol for _, member in own.parts) for own in apart.own)


def different(count: int) -> tuple[Net, Plan]:
    """A chain of tensors. Each op has C of its own, and a PE of its own."""
    code = "  for (int32_t i = 0; i < {0}; ++i) {{\n    output[i] = (p0[i] * {0}.0f);\n  }}\n"
    names = ["x", *(f"y{place}" for place in range(count))]
    ops = [
        Op(f"o{place}", TvmCode("scaled", code.format(place + 1)), (names[place],), (names[place + 1],))
        for place in range(count)
    ]
    tensors = {name: Tensor(name, (8,), "float32") for name in names}
    made = assign_engines(Net("different", ("x",), (names[-1],), tuple(ops), tensors), CORE_ALONE)
    tiles = {op.name: (Tile(1 + place, Box((0,), (8,))),) for place, op in enumerate(made.ops)}
    return made, plan_with_pins(Problem(Graph(made), BOARD, CORE_ALONE), tiles)


def test_programs_that_would_be_too_many_are_tables_that_share_what_they_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.plan.emit.allocate.MANY_PROGRAMS", 3)
    made, plan = different(4)
    assert all(pe.is_table for pe in plan.pes)
    others = [gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]]
    (role,) = roles_of(others, lambda _: ROOM)
    assert len(role.functions) == len({callee.name for callee in role.functions}) == 4
    assert [set(own.functions.values()) for own in role.own] == [{0}, {1}, {2}, {3}]


def test_few_programs_are_no_tables() -> None:
    _, plan = different(4)
    assert not any(pe.is_table for pe in plan.pes)


def test_tables_share_no_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function called by one PE takes memory on all PEs of the role."""
    monkeypatch.setattr("npukit.plan.emit.allocate.MANY_PROGRAMS", 3)
    made, plan = different(4)
    others = [gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]]
    (role,) = roles_of(others, lambda _: ROOM)
    data = role.activation_bytes + role.own_bytes + role.constants.bytes
    assert len(roles_of(others, lambda _: data + 100)) > 1


def test_tables_of_more_and_fewer_layers_share_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of layers is part of each PE's own data."""
    monkeypatch.setattr("npukit.plan.emit.allocate.MANY_PROGRAMS", 0)
    made, _ = different(3)
    places = {made.ops[0].name: 1, made.ops[1].name: 2, made.ops[2].name: 1}
    tiles = {name: (Tile(pe, Box((0,), (8,))),) for name, pe in places.items()}
    plan = plan_with_pins(Problem(Graph(made), BOARD, CORE_ALONE), tiles)
    (role,) = roles_of([gather(made, plan, pe, CORE_ALONE) for pe in plan.pes[1:]], lambda _: ROOM)
    counts = [dict(zip(row.names, row.values, strict=True)) for pe in role.pes for row in own_of(role, pe).rows]
    assert [row["layer_count"] for row in counts if "layer_count" in row] == [2, 1]


def test_pes_with_as_many_pieces_of_fewer_layers_have_programs_of_their_own() -> None:
    """A table's program counts layers: two tiles of the same layer differ from a tile of each of two layers."""
    (role,) = workers()
    one, *others = role.programs
    fewer = replace(one, layers=one.layers[:-1])
    assert len(roles_of([fewer, *others], lambda _: ROOM)) == 2
