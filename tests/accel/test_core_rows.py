"""Softmax, norms and totals in assembly: exact on every shape and cut, predicted, the same from both assemblers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from accel.test_core_moves import BOARD, OBSERVED, cut, run
from codegen.random_ops import Bundle, norm, random_inputs, softmax
from npukit.accel.core_rows import rows_of, total_of
from npukit.accel.cpu import Cpu
from npukit.board.board import load_board
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net, Op
from npukit.net.ops import Norm, Softmax, Total
from npukit.net.ops.norm import norm_constants
from npukit.net.passes.sums import cut_in_squares, has_squares
from npukit.net.reference import run_reference
from npukit.net.tensor import Quantization
from npukit.plan.planner import plan_around, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem


def rows(seed: int) -> Net:
    bundle = Bundle(np.random.default_rng(seed))
    for make in (softmax, norm) * 8:
        make(bundle)
    shares = Quantization((1 / 256,), (-128,))
    for shape in ((1, 4, 6, 40), (1, 3, 5, 256), (1, 1, 1, 2), (2, 1001), (1, 513), (4095,)):
        bundle.add(Softmax(), bundle.activation(shape), quantization=shares)
    for shape, apart in (((5, 64), 64), ((1, 6, 60), 20), ((1, 1, 7, 33), 11), ((2, 256), 1)):
        source = bundle.quantization()
        gains, biases = bundle.random.normal(size=(2, shape[-2], shape[-1] // apart))
        made = norm_constants(gains, biases, 1e-5, source, bundle.quantization(), centred=True, run=apart)
        constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
        bundle.add(made.attributes, bundle.activation(shape, source), *constants)
    return check_net(bundle.net())


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [pytest.param(4, marks=pytest.mark.exhaustive), 1])
def test_rows_are_exact_and_predicted_however_they_are_cut(pes: int, tmp_path: Path) -> None:
    net = rows(5)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    assert {"softmax by table", "norm", "norm by runs"} <= set(planned.kernels.values())
    for layer in run(net, planned, tmp_path).layers:
        assert layer.cycles is not None
        known = not planned.kernels[layer.name].startswith("plain C")
        assert pes > 1 or not known or layer.cycles <= 1.15 * layer.predicted_cycles + OBSERVED, layer


def test_both_assemblers_make_the_same_bytes() -> None:
    net = rows(6)
    for op in net.ops:
        made = rows_of(net, op)
        for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)) if made else ():
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [1, 4])
def test_a_norm_in_parts_is_the_norm_however_it_is_cut(pes: int, tmp_path: Path) -> None:
    bundle = Bundle(np.random.default_rng(8))
    for length in (32, 176, 512):
        source, (gains, biases) = bundle.quantization(), bundle.random.normal(size=(2, length))
        made = norm_constants(gains, biases, 1e-5, source, bundle.quantization(), centred=False)
        constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
        bundle.add(made.attributes, bundle.activation((1, 1, length), source), *constants)
    whole = check_net(bundle.net())
    net = whole
    for op in whole.ops:
        assert has_squares(whole, op)
        net = cut_in_squares(net, op.name)
    given = random_inputs(whole, np.random.default_rng(1))
    for one, other in zip(run_reference(check_net(net), given), run_reference(whole, given), strict=True):
        np.testing.assert_array_equal(one, other)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    assert set(planned.kernels.values()) == {"squares", "norm by squares"}
    for layer in run(net, planned, tmp_path).layers:
        assert layer.cycles is not None
        assert pes > 1 or layer.cycles <= 1.15 * layer.predicted_cycles + OBSERVED, layer


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [pytest.param(4, marks=pytest.mark.exhaustive), 1])
def test_sums_in_parts_are_added_exactly_however_they_are_cut(pes: int, tmp_path: Path) -> None:
    bundle = Bundle(np.random.default_rng(11))
    for parts in (2, 3, 4):
        sums = [bundle.tensor((1, 40), None, "int32") for _ in range(parts)]
        bundle.inputs.extend(sums)
        highest = bundle.random.integers(1 << 30, 1 << 31, 40)
        numbers = bundle.random.integers(-9000, 9000, 40), highest, -bundle.random.integers(1, 23, 40)
        bundle.add(Total(), *sums, *(bundle.constant(values.astype(np.int32), None) for values in numbers))
    net = check_net(bundle.net())
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    assert set(planned.kernels.values()) == {"total"}
    for layer in run(net, planned, tmp_path).layers:
        assert layer.cycles is not None
        assert pes > 1 or layer.cycles <= 1.15 * layer.predicted_cycles + OBSERVED, layer


def test_totals_of_many_parts_of_pixels_and_of_left_shifts_are_c() -> None:
    for shape, parts, shift, clamp in (
        ((1, 8), 5, -4, (-128, 127)),
        ((3, 8), 2, -4, (-128, 127)),
        ((1, 8), 2, 0, (-128, 127)),
        ((1, 8), 2, -4, (0, 127)),
    ):
        bundle = Bundle(np.random.default_rng(11))
        sums = [bundle.tensor(shape, None, "int32") for _ in range(parts)]
        bundle.inputs.extend(sums)
        numbers = (np.full(8, value, np.int32) for value in (0, 1 << 30, shift))
        bundle.add(Total(clamp), *sums, *(bundle.constant(values, None) for values in numbers))
        assert total_of(bundle.net(), bundle.ops[0]) is None


def test_several_rows_and_those_that_are_centred_are_no_norms_in_parts() -> None:
    bundle = Bundle(np.random.default_rng(8))
    for shape, centred in (((1, 2, 64), False), ((1, 1, 64), True), ((1, 1, 60), False)):
        gains = np.ones(shape[-1])
        made = norm_constants(gains, gains, 1e-5, bundle.quantization(), bundle.quantization(), centred=centred)
        constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
        bundle.add(made.attributes, bundle.activation(shape), *constants)
    assert not any(has_squares(bundle.net(), op) for op in bundle.ops)


def test_long_rows_and_other_cores_have_kernels_in_c() -> None:
    bundle = Bundle(np.random.default_rng(1))
    bundle.add(Softmax(), bundle.activation((2, 4096)), quantization=Quantization((1 / 256,), (-128,)))
    assert rows_of(bundle.net(), bundle.ops[0]) is None
    planned = plan_with_kernels(Problem(Graph(rows(7)), load_board("mps2-an385"), {"cpu": Cpu()}, max_pes=1), "latency")
    assert all(note.startswith("plain C") for note in planned.kernels.values())


@pytest.mark.parametrize("length", [1001, 4095])
@pytest.mark.parametrize("alike", [True, False])
def test_a_long_row_of_small_shares(length: int, tmp_path: Path, *, alike: bool) -> None:
    """Sums of many equal exponentials with shares below the least step, or one exponential with the whole sum."""
    bundle = Bundle(np.random.default_rng(2))
    source = bundle.activation((1, length), Quantization((0.1,), (0,)))
    bundle.add(Softmax(), source, quantization=Quantization((1 / 256,), (-128,)))
    net = check_net(bundle.net())
    values = np.full((1, 1, length), 7, np.int8)
    values[0, 0, length // 2] += 0 if alike else 100
    planned = plan_with_kernels(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=1), "latency")
    assert set(planned.kernels.values()) == {"softmax by table"}
    assert run(net, planned, tmp_path, inputs=values).layers


def test_norms_of_other_scales_share_a_routine() -> None:
    bundle = Bundle(np.random.default_rng(8))
    for spread in (0.01, 0.02, 0.05):
        gains, source = np.ones(48), Quantization((spread,), (bundle.pick(-128, 127),))
        made = norm_constants(gains, gains, 1e-5, source, bundle.quantization(), centred=False)
        constants = [bundle.constant(values, None) for values in (made.multipliers, made.offsets)]
        bundle.add(made.attributes, bundle.activation((3, 48), source), *constants)
    net = bundle.net()
    shifts = {op.attributes.shift for op in net.ops if isinstance(op.attributes, Norm)}
    assert len({names_of(net, op) for op in net.ops}) == len(shifts) < len(net.ops)


def names_of(net: Net, op: Op) -> tuple[str, ...]:
    made = rows_of(net, op)
    assert made is not None
    return tuple(code.name for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)))
