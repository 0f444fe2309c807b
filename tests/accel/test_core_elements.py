"""Elementwise functions of two tensors in assembly: exact on every shape and cut, predicted, alike by compilers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from accel.test_core_moves import BOARD, OBSERVED, cut, run
from codegen.random_ops import Bundle
from helpers import first_of
from npukit.accel.core_elements import choices_of, products_of
from npukit.accel.cpu import Cpu
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.ops import Divide, Maximum, Minimum, Multiply, Select, SquaredDifference
from npukit.net.tensor import Quantization
from npukit.plan.planner import plan_around
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

OF_TWO = "product", "quotient", "squared difference"
SHAPES = (
    ((1, 4, 6, 40), (1, 4, 6, 40)),
    ((1, 8, 1, 64), (1, 1, 1, 64)),
    ((1, 1, 1, 35), (1, 5, 3, 35)),
    ((1, 5, 1, 7), (1, 5, 3, 7)),
    ((1, 1, 512), (1, 1, 512)),
    ((6, 9), (9,)),
    ((17,), (17,)),
)


def products(seed: int, *, rounds_once: bool) -> Net:
    bundle = Bundle(np.random.default_rng(seed), rounds_once=rounds_once)
    for first, second in SHAPES:
        for kind, scale in ((Multiply(), 0.004), (Multiply(), 0.2), (Divide(), 0.05), (SquaredDifference(), 0.02)):
            bundle.add(kind, *map(bundle.activation, (first, second)), quantization=Quantization((scale,), (11,)))
    return check_net(bundle.net())


@pytest.mark.exhaustive
@pytest.mark.parametrize("rounds_once", [False, True])
@pytest.mark.parametrize("pes", first_of([1, 4]))
def test_products_are_exact_and_predicted_however_they_are_cut(pes: int, tmp_path: Path, *, rounds_once: bool) -> None:
    net = products(5, rounds_once=rounds_once)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    noted = [planned.kernels[op.name] for op in net.ops]
    counts = Counter(noted)
    assert counts["product"] > len(SHAPES)
    assert min(counts["quotient"], counts["squared difference"]) >= len(SHAPES) - 1
    for layer, note in zip(run(net, planned, tmp_path).layers, noted, strict=True):
        assert layer.cycles is not None
        assert pes > 1 or note not in OF_TWO or layer.cycles <= 1.1 * layer.predicted_cycles + OBSERVED, layer


@pytest.mark.parametrize("rounds_once", [False, True])
def test_both_assemblers_make_the_same_bytes(*, rounds_once: bool) -> None:
    net = products(6, rounds_once=rounds_once)
    for op in net.ops:
        made = products_of(net, op)
        for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)) if made else ():
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)


@pytest.mark.parametrize("shapes", [((3, 8), (3, 1)), ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5))])
def test_other_products_are_c(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Products with one number for a whole line, or with more axes than registers for loops."""
    bundle = Bundle(np.random.default_rng(1))
    bundle.add(Multiply(), *map(bundle.activation, shapes))
    assert products_of(bundle.net(), bundle.ops[0]) is None


def choices(seed: int) -> Net:
    """Selections, minima and maxima of tensors, of numbers and of constants by channel, with broadcasting."""
    bundle = Bundle(np.random.default_rng(seed))
    for shape in ((1, 4, 6, 40), (1, 5, 3, 7), (6, 130), (17,)):
        alike = bundle.quantization()
        narrow = (*(1 for _ in shape[:-1]), shape[-1])
        first, second, third = (bundle.activation(each, alike) for each in (shape, shape, narrow))
        number, held = (bundle.constant(bundle.int8(size), alike) for size in ((1,), shape[-1:]))
        for kind, operands in (
            (Minimum(), (first, second)),
            (Minimum(), (first, held)),
            (Maximum(), (first, third)),
            (Maximum(), (number, first)),
        ):
            bundle.add(kind, *operands, quantization=alike)
        for conditions in (shape, (*shape[:-1], 1), narrow, (1,)):
            condition = bundle.tensor(conditions, None, "bool")
            bundle.inputs.append(condition)
            bundle.add(Select(), condition, first, third, quantization=alike)
            bundle.add(Select(), condition, number, first, quantization=alike)
    return check_net(bundle.net())


@pytest.mark.parametrize("pes", first_of([4, 1]))
def test_choices_are_exact_and_predicted_however_they_are_cut(pes: int, tmp_path: Path) -> None:
    net = choices(7)
    assert all(choices_of(net, op) for op in net.ops)
    planned = plan_around(Problem(Graph(net), BOARD, {"cpu": Cpu()}, max_pes=pes), cut(net, pes))
    for layer in run(net, planned, tmp_path).layers:
        assert pes > 1 or abs((layer.cycles or 0) - layer.predicted_cycles) <= OBSERVED, layer


def test_both_assemblers_make_the_same_bytes_of_choices() -> None:
    net = choices(8)
    for op in net.ops:
        made = choices_of(net, op)
        for code in made.codes(net, op, Box.whole(net.tensor(op.output).shape)) if made else ():
            laboratory.check_code(f"{laboratory.PROLOGUE}{code.assembly}", code.bytes)
