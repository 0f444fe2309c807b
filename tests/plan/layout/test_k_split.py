"""Splits along input channels: partial sums anywhere on the mesh, added by a core, exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codegen.random_ops import Bundle
from npukit.accel.engines import assign_engines, plugins_of, with_core, with_patterns_of
from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.check import check_net
from npukit.net.net import CORE, Net
from npukit.net.ops import Sums
from npukit.net.ops.norm import norm_constants
from npukit.net.passes.sums import cut_in_sums
from npukit.net.reference.interpreter import run_reference
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.layout.k_split import cut_as_wanted, deep, spread, worth_trying
from npukit.plan.strategies import sums
from npukit.plan.tensors.boxes import grid, to_boxes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.plan.user_mapping import read_pins, with_sums
from npukit.progress import Silent
from oracles.plan_execution import Execution
from plan.engines import engines
from plan.networks import Builder
from plan.planning import plan_with_pins

BOARD = load_board("pe-mesh")


def random_net(data: st.DataObject) -> Net:
    """A convolution with random windows, strides and padding, then a dense layer."""
    b = Builder("summed", seed=data.draw(st.integers(0, 99)))
    x = b.input(1, data.draw(st.integers(3, 7)), data.draw(st.integers(3, 7)), data.draw(st.integers(4, 24)))
    x = b.conv(x, data.draw(st.integers(4, 40)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2)))
    return b.net(b.dense(b.flatten(x), data.draw(st.integers(1, 20))))


def random_places(net: Net, data: st.DataObject) -> Assignment:
    """Each op whole on a random PE; sums may also be cut along their output channels."""
    found: dict[str, tuple[Tile, ...]] = {}
    for op in Graph(net).ops:
        shape = net.tensor(op.output).shape
        most = min(3, shape[-1]) if isinstance(op.attributes, Sums) else 1
        parts = (*(1 for _ in shape[:-1]), data.draw(st.integers(1, most)))
        boxes = to_boxes(grid(shape, parts, (1,) * len(shape)))
        pes = data.draw(st.permutations(range(16)))
        found[op.name] = tuple(Tile(pe, box) for pe, box in zip(pes, boxes, strict=False))
    return found


@pytest.mark.exhaustive
@settings(max_examples=8, derandomize=True)
@given(data=st.data())
def test_any_cut_anywhere_equals_the_whole(data: st.DataObject) -> None:
    net = random_net(data)
    cut = net
    for op in (op for op in net.ops if op.kind in ("conv2d", "dense")):
        depth = net.tensor(op.inputs[0]).shape[-1]
        parts = data.draw(st.integers(2, min(depth, 5)))
        cut = cut_in_sums(cut, op.name, parts, in_turn=data.draw(st.booleans()))
    check_net(cut)
    inputs = [np.random.default_rng(1).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)]
    (wanted,) = run_reference(net, inputs)
    assert np.array_equal(run_reference(cut, inputs)[0], wanted)
    plan = plan_with_pins(Problem(Graph(cut), BOARD, engines(BOARD)), random_places(cut, data))
    assert np.array_equal(Execution(cut, plan).run(inputs)[0], wanted)


def long_sums() -> Net:
    """A dense layer with many products and few results."""
    b = Builder("long")
    return b.net(b.dense(b.input(1, 4096), 16))


def test_many_products_for_few_results_are_summed_up_on_several_pes() -> None:
    net, plugins = long_sums(), plugins_of(BOARD)
    prepared = Prepared(net, plugins, with_core(plugins), "", {}, {})
    alone, together = (plan_on(BOARD, prepared, Options(pes=pes), Silent()) for pes in (1, 4))
    assert alone.net is net
    assert len(together.plan.pes) == 4
    assert any(isinstance(op.attributes, Sums) for op in together.net.ops)
    assert together.plan.predicted.latency_cycles < 0.6 * alone.plan.predicted.latency_cycles


def test_what_has_enough_results_for_all_pes_is_left_whole() -> None:
    b = Builder("wide")
    net = b.net(b.dense(b.dense(b.input(1, 4096), 64), 10))
    first, second = (op.name for op in net.ops)
    assert worth_trying(net, 4) == {}
    assert worth_trying(net, 9) == {first: 2}
    assert worth_trying(net, 20) == {first: 5}
    assert second not in worth_trying(net, 20)
    assert worth_trying(net, 152) == {first: 8}


def test_on_a_large_mesh_what_weighs_little_is_left_whole() -> None:
    b = Builder("light")
    image = b.conv(b.input(1, 64, 64, 64), 64, 3)
    assert worth_trying(b.net(b.dense(b.input(1, 2048), 128), image), 152) == {}


def test_a_norm_of_one_row_is_in_parts() -> None:
    bundle = Bundle(np.random.default_rng(0))
    source, gains = bundle.quantization(), np.ones(512)
    made = norm_constants(gains, gains, 1e-5, source, source, centred=False)
    constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
    bundle.add(made.attributes, bundle.activation((1, 1, 512), source), *constants, quantization=source)
    net = check_net(bundle.net())
    (op,) = net.ops
    assert worth_trying(net, 152) == {op.name: 32}
    cut = check_net(cut_as_wanted(net, with_core(plugins_of(BOARD)), worth_trying(net, 152)))
    assert [op.kind for op in cut.ops] == ["squares", "norm_by_squares"]
    assert cut.tensor(cut.ops[0].output).shape == (1, 1, 32, 1)
    assert spread(cut, {op.name: 32}, range(152)) == {}, "the parts of a norm are a single op"


def test_on_a_large_mesh_a_layer_that_is_one_with_what_follows_is_cut_too() -> None:
    b = Builder("residual")
    net = b.net(b.add(b.dense(b.input(1, 2048), 128), b.input(1, 128)))
    placed = with_core(plugins_of(BOARD))
    fused = with_patterns_of(assign_engines(net, placed), placed)
    (op,) = fused.ops
    layer = op.parts[0].name
    assert layer != op.name
    assert worth_trying(fused, 152) == {layer: 4}
    cut = cut_as_wanted(fused, placed, {layer: 3})
    assert sorted(op.kind for op in cut.ops) == ["add", "sums", "sums", "sums", "total"]
    assert [each.kind for each in cut.ops if each.engine == CORE] == ["total"]


def deep_layer() -> Net:
    """A convolution in which sixteen channels have more weights than half of a PE's memory."""
    b = Builder("deep")
    return b.net(b.conv(b.input(1, 6, 6, 512), 32, 3, 1))


def test_sums_too_deep_for_a_pe_are_made_one_part_of_the_depth_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("spinnaker2")
    plugins = plugins_of(board)
    placed = with_core(plugins, board)
    net = assign_engines(deep_layer(), placed)
    (op,) = net.ops
    assert deep(net, placed) == {op.name: 4}
    prepared = Prepared(net, plugins, placed, "", {}, {})
    cut = plan_on(board, prepared, Options(pes=1), Silent()).net
    assert [[part.kind for part in each.parts] for each in cut.ops] == [["sums"]] * 3 + [["sums", "total"]]
    assert {each.engine for each in cut.ops} == {"mla"}
    inputs = [np.random.default_rng(1).integers(-128, 128, net.tensor(net.inputs[0]).shape, np.int8)]
    assert np.array_equal(run_reference(cut, inputs)[0], run_reference(net, inputs)[0])
    monkeypatch.setattr(sums, "deep", lambda net, engines: {})
    with pytest.raises(DoesNotFit):
        plan_on(board, prepared, Options(pes=1), Silent())


def test_weights_that_come_in_fours_are_not_too_deep() -> None:
    placed = with_core(plugins_of(BOARD))
    assert deep(assign_engines(deep_layer(), placed), placed) == {}


def test_a_file_says_it(tmp_path: Path) -> None:
    net = long_sums()
    (op,) = net.ops
    path = tmp_path / "plan.toml"
    path.write_text(f"[ops.{op.name}]\nsums = 3\n[ops.{op.name}_sums_2]\npes = [5]\n")
    cut = with_sums(net, engines(BOARD), str(path))
    assert [each.name for each in cut.ops] == [*(f"{op.name}_sums_{part}" for part in range(3)), op.name]
    pins = read_pins(str(path), Graph(cut), BOARD)
    assert {name: [tile.pe for tile in tiles] for name, tiles in pins.items()} == {f"{op.name}_sums_2": [5]}


def test_what_has_no_such_sums_is_refused() -> None:
    b = Builder("pooled")
    net = b.net(b.pool(b.conv(b.input(1, 4, 4, 3), 8), 2, 2))
    filtered, pooled = net.ops
    with pytest.raises(NpukitError, match="only convolutions and dense layers"):
        cut_in_sums(net, pooled.name, 2)
    with pytest.raises(NpukitError, match="its input has 3 channels"):
        cut_in_sums(net, filtered.name, 4)
