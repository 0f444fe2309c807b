from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from helpers import first_of
from npukit.accel.engines import AS_ASKED, engines_of
from npukit.application.apply import Ends, applied
from npukit.application.declared import NOTHING
from npukit.board.board import load_board
from npukit.dump import CANDIDATES, dumping
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.reference.interpreter import run_reference
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Buffer, Compute, Plan
from npukit.plan.ir.store import load_plan, save_plan
from npukit.plan.planner import plan_network
from oracles.plan_execution import Execution
from plan.engines import engines, planned_on
from plan.networks import Builder, autoencoder, image_net, keyword_net, small_net, wake_word_net

BOARD = load_board("pe-mesh")


def one_pe(net: Net) -> Plan:
    return plan_network(net, BOARD, engines(BOARD), max_pes=1)


def overlap(a: Buffer, b: Buffer) -> bool:
    together = a.first <= b.last and b.first <= a.last
    return together and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes


def test_every_op_but_a_reshape_is_a_step_in_order() -> None:
    net = keyword_net()
    (pe,) = one_pe(net).pes
    assert [step.op for step in pe.computes()] == [op.name for op in net.ops if op.kind != "reshape"]
    assert [step.engine for step in pe.computes()] == [op.engine for op in net.ops if op.kind != "reshape"]


def test_cycles_are_the_engines() -> None:
    """A command behind another of its chain takes fewer."""
    net = keyword_net()
    board_engines = engines(BOARD)
    (pe,) = one_pe(net).pes
    ops = {op.name: op for op in net.ops}
    for before, step in pairwise((None, *pe.steps)):
        if isinstance(step, Compute):
            cost = board_engines[step.engine].cost(net, ops[step.op], step.output.box)
            chained = isinstance(before, Compute) and before.engine == step.engine
            assert step.cycles == cost.cycles - (cost.chained if chained else 0)


def test_buffers_that_live_together_lie_apart_but_for_reshapes_and_sums_on_their_last_operand() -> None:
    net = image_small()
    (pe,) = one_pe(net).pes
    pairs = {(op.output, op.inputs[0]) for op in net.ops if op.kind == "reshape"}
    pairs |= {(op.output, op.inputs[0]) for op in net.ops if op.kind == "add"}
    for i, a in enumerate(pe.buffers):
        for b in pe.buffers[i + 1 :]:
            aliased = bool({(a.tensor, b.tensor), (b.tensor, a.tensor)} & pairs)
            assert overlap(a, b) == (aliased and a.tensor != "")
            if aliased:
                assert (a.offset, a.bytes) == (b.offset, b.bytes)


def image_small() -> Net:
    b = Builder("small")
    x = b.conv(b.input(1, 16, 16, 3), 16, 3)
    x = b.add(x, b.conv(x, 16, 3))
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 10)), x)


def test_inputs_live_from_the_start_and_outputs_to_the_end() -> None:
    net = image_small()
    (pe,) = one_pe(net).pes
    for name in net.inputs:
        assert pe.buffer(name).first == 0
    for name in net.outputs:
        assert pe.buffer(name).last == len(pe.steps) - 1


def test_scratch_lives_for_its_step() -> None:
    net = image_small()
    (pe,) = one_pe(net).pes
    (index,) = [i for i, step in enumerate(pe.computes()) if step.scratch]
    softmax = list(pe.computes())[index]
    assert softmax.scratch is not None
    scratch = pe.buffer(softmax.scratch)
    assert (scratch.first, scratch.last, scratch.bytes) == (index, index, 40)


def wide(side: int) -> Net:
    """A net with activations larger than one PE: streaming constants does not help."""
    b = Builder("wide")
    x = b.conv(b.input(1, side, side, 4), 16, 3, stride=2)
    return b.net(b.dense(b.flatten(b.global_pool(b.conv(x, 32, 3))), 10))


def test_what_does_not_fit_is_named_with_the_shortfall() -> None:
    with pytest.raises(DoesNotFit) as refused:
        one_pe(wide(128))
    assert "PE 0" in refused.value.message
    assert "bytes more than" in refused.value.message
    assert refused.value.exit_status == 3
    assert refused.value.tries


@pytest.mark.parametrize(
    ("side", "channels", "said"),
    [
        (120, 8, "PE 0 of stm32f4-disco has in its RAM of 131,072: activations"),
        (4, 338, "PE 0 of stm32f4-disco has in its Flash of 1,048,576: code 17,408, constants"),
        (256, 8, "tensors of 524,288 bytes once conv2d0 is done, stm32f4-disco has room for 131,072 in RAM"),
        (
            4,
            512,
            "weights of 2,359,296 bytes that its core computes with, stm32f4-disco has room for 1,048,576 in Flash",
        ),
    ],
)
def test_what_does_not_fit_names_the_memory_and_what_it_holds(side: int, channels: int, said: str) -> None:
    board, b = load_board("stm32f4-disco"), Builder("large")
    net = b.net(b.conv(b.input(1, side, side, channels), channels, 3, engine="cpu"))
    with pytest.raises(DoesNotFit, match=said):
        plan_network(net, board, engines_of(board), max_pes=1)


def test_the_dump_of_a_refusal_has_the_candidates(tmp_path: Path) -> None:
    with dumping(tmp_path), pytest.raises(DoesNotFit):
        one_pe(wide(128))
    assert re.search(r": PE 0 lacks [0-9,]+ bytes$", (tmp_path / CANDIDATES).read_text(), re.MULTILINE)


def test_what_is_far_too_large_is_refused_without_an_emission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npukit.plan.search.search.emit_with_flags", lambda *_, **__: pytest.fail("emitted"))
    with pytest.raises(DoesNotFit, match=r"needs at least [0-9,]+ bytes more than PE 0"):
        one_pe(wide(192))


def test_the_remedy_it_names_works() -> None:
    with pytest.raises(DoesNotFit) as refused:
        one_pe(wide(128))
    (pes,) = [int(number) for number in re.findall(r"--pes (\d+): fits", " ".join(refused.value.tries))]
    assert pes > 1
    assert len(plan_network(wide(128), BOARD, engines(BOARD), max_pes=pes).pes) <= pes


def test_the_board_it_names_has_room() -> None:
    with pytest.raises(DoesNotFit) as refused:
        one_pe(wide(128))
    (name,) = re.findall(r"--board (\S+): fits, [0-9,]+ bytes of its memory are left", " ".join(refused.value.tries))
    board = load_board(name)
    on_core = wide(128).with_ops(tuple(op.placed("cpu") for op in wide(128).ops))
    assert len(plan_network(on_core, board, engines_of(board)).pes) == 1


def tiny() -> Net:
    b = Builder("tiny")
    x = b.conv(b.input(1, 8, 8, 4), 16, 3)
    return b.net(b.dense(b.flatten(b.mean(b.conv(b.depthwise(x), 16))), 10))


@pytest.mark.exhaustive
def test_a_frame_that_more_pes_would_slow_down_is_left_to_fewer() -> None:
    few, many = (plan_network(tiny(), BOARD, engines(BOARD), max_pes=pes) for pes in (8, 16))
    assert many.predicted.latency_cycles <= few.predicted.latency_cycles
    assert len(many.pes) < 16


def test_what_a_float_network_would_save_in_int8_is_told() -> None:
    """int8 saves three of four bytes of the weights, and of the largest tensors between two layers."""
    weights, shapes = np.ones((400, 10), np.float32), {"x": (1, 100), "w": (400, 10), "h": (1, 50_000), "y": (1, 400)}
    tensors = {name: Tensor(name, shape, "float32") for name, shape in shapes.items()}
    ops = (
        Op("widen", TvmCode("widen", "output[0] = p0[0];\n"), ("x",), ("h",)),
        Op("weigh", TvmCode("weigh", "output[0] = p0[0] * p1[0];\n"), ("h", "w"), ("y",)),
    )
    net = Net("in_float", ("x",), ("y",), ops, tensors, {"w": weights})
    with pytest.raises(DoesNotFit) as refused:
        one_pe(net)
    (told,) = (each for each in refused.value.tries if "--calibration" in each)
    assert "int8 takes 12,000 bytes of constants less, and 150,000 of what" in told


def test_what_integers_instead_of_float_would_save_is_told() -> None:
    """With integer inputs and outputs the net fits."""
    b = Builder("in float")
    net = b.net(b.conv(b.input(1, 96, 96, 4), 4, 1))
    in_float = applied(net, NOTHING, "NHWC", Ends(("float32",), ("float32",)))
    with pytest.raises(DoesNotFit) as refused:
        one_pe(in_float)
    saved = 2 * 96 * 96 * 4 * 4
    assert f"--io int8: inputs and outputs as integers, without {saved:,} bytes of float" in refused.value.tries
    assert one_pe(net)


def test_what_fits_no_number_of_pes_says_how_much_is_missing() -> None:
    """A tensor takes nearly all memory for tensors on the PEs, but a search might still find a plan."""
    b = Builder("large")
    net = b.net(b.conv(b.conv(b.input(1, 256, 256, 4), 24, 3), 4, 3))
    with pytest.raises(DoesNotFit) as refused:
        plan_network(net, BOARD, engines(BOARD), max_pes=2)
    assert "bytes are still missing" in refused.value.tries[0]


def test_tensors_for_which_the_whole_mesh_has_no_room_are_refused_before_any_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = Builder("large")
    net = b.net(b.conv(b.conv(b.input(1, 256, 256, 4), 64, 1), 4, 1))
    monkeypatch.setattr("npukit.plan.planner.STRATEGIES", {})
    with pytest.raises(DoesNotFit, match="tensors of 4,194,304 bytes once conv2d0 is done, all 16 PEs") as refused:
        plan_network(net, BOARD, engines(BOARD))
    assert "--board pe-mesh-152: 152 PEs instead of 16" in refused.value.tries


def test_an_op_that_no_pe_can_hold_is_why_more_pes_do_not_help() -> None:
    """Each part of a softmax needs a whole row."""
    b = Builder("large")
    net = b.net(b.softmax(b.flatten(b.conv(b.input(1, 128, 128, 3), 16, 1))))
    with pytest.raises(DoesNotFit) as refused:
        one_pe(net)
    said = "more PEs would not help: one PE must compute some of softmax"
    assert any(said in remedy for remedy in refused.value.tries)


def test_where_the_core_s_ops_are_too_large_the_remedies_are_more_pes_and_the_accelerator() -> None:
    b = Builder("core")
    net = b.net(b.conv(b.input(1, 8, 8, 64), 256, 3, engine="cpu"))
    asked = net.with_ops(tuple(op.placed("cpu", AS_ASKED) for op in net.ops))
    with pytest.raises(DoesNotFit) as refused:
        plan_network(asked, BOARD, engines_of(BOARD), max_pes=1)
    first = [remedy.split(":")[0] for remedy in refused.value.tries]
    assert first[0] == "more PEs"
    assert "without --engine cpu" in first


def test_of_many_ops_that_read_a_tensor_some_are_named() -> None:
    reads = [Op(f"read_{at}", TvmCode("read", "output[0] = p0[0];\n"), ("x",), (f"y{at}",)) for at in range(5)]
    ends = tuple(f"y{at}" for at in range(5))
    tensors = {"x": Tensor("x", (1, 200_000), "int8"), **{name: Tensor(name, (1, 8), "int8") for name in ends}}
    with pytest.raises(DoesNotFit, match=r"x, 200,000, for read_0, read_1, read_2 and 2 more\)"):
        one_pe(Net("read often", ("x",), ends, tuple(reads), tensors, {}))


def deep_images() -> Net:
    """Convolutions with outputs of 262,144 bytes."""
    b = Builder("deep")
    x = b.conv(b.input(1, 128, 128, 16), 16, 3)
    for _ in range(6):
        x = b.conv(x, 16, 3)
    return b.net(x)


def test_what_is_too_large_with_streams_is_told_with_the_least_that_is_missing() -> None:
    """Moving constants to DRAM is no remedy, because npukit does so without an option."""
    with pytest.raises(
        DoesNotFit, match=r"needs at least [0-9,]+ bytes more.*those of accelerators are streamed"
    ) as no:
        one_pe(deep_images())
    assert re.match("more PEs: --pes [0-9]+: fits", no.value.tries[0])


def test_a_plan_reads_back_equal(tmp_path: Path) -> None:
    plan = one_pe(keyword_net())
    save_plan(plan, tmp_path / "plan.txt")
    assert load_plan(tmp_path / "plan.txt") == plan


def test_a_damaged_plan_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_text('{"model": 3}')
    with pytest.raises(NpukitError, match=r"plan .* is wrong: line 1 is not understood"):
        load_plan(tmp_path / "plan.txt")


TINY = (keyword_net, autoencoder, wake_word_net, image_net)
ON_MESHES = sorted(product(TINY, [16, 4]), key=lambda case: case not in [(keyword_net, 16), (autoencoder, 4)])
"""`test_exact.py` covers the image network on 16 PEs. The planner takes longest for the wake words."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make", "pes"),
    first_of(ON_MESHES, 2),
)
def test_the_tiny_networks_on_a_mesh_equal_the_reference(make: Callable[[], Net], pes: int) -> None:
    net, plan = planned_on(pes, make)
    assert len(plan.pes) <= pes
    shape = net.tensor(net.inputs[0]).shape
    execution = Execution(net, plan)
    for seed in range(2):
        inputs = [np.random.default_rng(seed).integers(-128, 128, shape, np.int8)]
        for got, want in zip(execution.run(inputs), run_reference(net, inputs), strict=True):
            assert np.array_equal(got, want)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("make", "cycles"),
    first_of([(autoencoder, 13_200), (keyword_net, 35_600), (image_net, 46_200), (wake_word_net, 84_400)], 2),
)
def test_sixteen_pes_are_four_times_faster_than_the_fastest_published_chip(
    make: Callable[[], Net], cycles: int
) -> None:
    assert planned_on(16, make)[1].predicted.latency_cycles <= cycles


def test_the_fewest_pes_that_hold_a_network() -> None:
    plan = plan_network(deep_images(), BOARD, engines(BOARD), objective="memory", max_pes=16)
    fewest = len(plan.pes)
    assert fewest > 1
    assert min(pe.memory.free for pe in plan.pes) >= 0
    with pytest.raises(DoesNotFit):
        plan_network(deep_images(), BOARD, engines(BOARD), max_pes=fewest - 1)


@pytest.mark.exhaustive
def test_plans_are_the_same_every_time() -> None:
    first, second = (plan_network(image_small(), BOARD, engines(BOARD), max_pes=16) for _ in range(2))
    assert first == second


def test_an_unknown_objective_is_an_error() -> None:
    with pytest.raises(NpukitError, match="beauty"):
        plan_network(image_small(), BOARD, engines(BOARD), objective="beauty")


@pytest.mark.exhaustive
def test_a_dead_root_moves_the_plan_to_the_next_pe() -> None:
    board = BOARD.model_copy(update={"mesh": BOARD.mesh.model_copy(update={"dead_pes": (0, 1)})})
    plan = plan_network(small_net(), board, engines(board), max_pes=16)
    assert plan.pes[0].pe == 2
    assert {pe.pe for pe in plan.pes}.isdisjoint({0, 1})


def test_a_plan_prints_every_step_and_buffer() -> None:
    plan = one_pe(image_small())
    text = str(plan)
    for step in plan.pes[0].computes():
        assert step.op in text
    for buffer in plan.pes[0].buffers:
        assert buffer.name in text


def test_the_larger_image_net_takes_streams_on_one_pe() -> None:
    assert one_pe(image_net()).streams
