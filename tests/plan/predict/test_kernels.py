"""Assembly kernels on a mesh, for ops computed whole by one PE."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from accel.core_networks import CoreBuilder
from end_to_end.builds import shared_build
from helpers import CHECKOUT, first_of
from npukit import api
from npukit.accel.cpu import Cpu
from npukit.accel.engines import plugins_of, with_core
from npukit.board.board import Board, load_board
from npukit.net.box import Box
from npukit.net.net import CORE, Net
from npukit.net.tensor import Quantization, Tensor
from npukit.plan.ir.assignment import Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import plan_around, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from plan.networks import Builder

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


@pytest.mark.exhaustive
def test_an_op_that_one_pe_computes_whole_has_its_kernel_and_stays_exact(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    rows = {op["name"]: op for op in built.manifest.summary["ops"]}
    assert len(rows["conv2d_0"]["pes"]) == 4
    assert rows["softmax_0"]["kernel"] == "softmax by table"
    assert api.validate(tmp_path / "out").passed


def fit(board: str = "pe-mesh", **options: Any) -> dict[str, Any]:
    return api.fit(DIGITS, board=board, options=api.Options(**options))


@pytest.mark.exhaustive
def test_of_one_pe_and_several_the_better_by_the_objective_is_taken() -> None:
    best, one, few = fit(), fit(pes=1), fit(objective="memory")
    assert best["predicted"]["latency_cycles"] < one["predicted"]["latency_cycles"]
    assert one["pes_used"] == few["pes_used"] == 1 < best["pes_used"]


@pytest.mark.exhaustive
def test_cores_share_a_frame_without_accelerators_too() -> None:
    alone, both = (fit(board=board)["predicted"]["latency_cycles"] for board in ("pico", "pico-dual"))
    assert alone > 1.6 * both


@pytest.mark.exhaustive
def test_two_cores_of_a_chip_have_constants_that_make_them_wait_near() -> None:
    fitted = fit(board="pico-dual", objective="throughput")
    assert [pe["variables"] > 1000 for pe in fitted["memory"]] == [True, True]


def two_ops() -> tuple[Net, dict[str, tuple[Tile, ...]]]:
    """A convolution shared by two PEs, a convolution on PE 0, and a product by pixel, for which no kernel exists."""
    b = CoreBuilder("two")
    shared = b.conv(b.input(1, 8, 8, 4), 8)
    alone = b.conv(shared, 8)
    net = b.net(b.multiply(alone, b.input(1, 8, 8, 1)))
    whole = (Tile(0, Box.whole((1, 8, 8, 8))),)
    halves = Tile(0, Box((0, 0, 0, 0), (1, 4, 8, 8))), Tile(1, Box((0, 4, 0, 0), (1, 8, 8, 8)))
    return net, dict(zip([op.name for op in net.ops], (halves, whole, whole), strict=True))


def test_the_reason_of_each_op_in_c_is_its_own() -> None:
    net, pins = two_ops()
    planned = plan_around(Problem(Graph(net), load_board("pe-mesh"), {"cpu": Cpu()}, max_pes=2), pins)
    shared, alone, product = planned.kernels.values()
    assert shared == "plain C: its kernel in assembly wants the whole op on one PE, and 2 PEs share it"
    assert not alone.startswith("plain C")
    assert product.startswith("plain C: ")
    assert "whole op" not in product


def with_memory(board: str, kilobytes: int) -> Board:
    """The board with `kilobytes` of memory for activations."""
    found = load_board(board)
    home = found.memory_for("activations")
    sizes = ((each, kilobytes << 10 if each is home else each.size) for each in found.memory)
    return found.model_copy(update={"memory": tuple(each.model_copy(update={"size": size}) for each, size in sizes)})


class OneScale(Builder):
    """Builds layers with equal scales for all channels, like TensorFlow Lite's dense layers."""

    def _filter(self, shape: tuple[int, ...], channels: int) -> tuple[str, str]:
        weights, bias = super()._filter(shape, channels)
        self.tensors[weights] = Tensor(weights, shape, "int8", Quantization((0.002,) * channels, (0,) * channels, 0))
        return weights, bias


def _conv(b: Builder, source: str) -> str:
    return b.conv(source, 16, 3)


def _residual(b: Builder, source: str) -> str:
    return b.add(source, b.conv(source, b.tensors[source].shape[-1], 3))


def random_net(seed: int) -> Net:
    """Dense layers, or convolutions, depthwise convolutions and sums."""
    b, chance = (Builder, OneScale)[seed % 2]("random", seed), random.Random(seed)
    if seed % 2:
        x = b.input(1, chance.choice((40, 320)))
        for _ in range(3):
            x = b.dense(x, chance.choice((32, 64, 128)))
        return b.net(x)
    x = b.input(1, 12, 8, 4)
    for _ in range(3):
        x = chance.choice((_conv, Builder.depthwise, _residual))(b, x)
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), 10)))


def predicted_on(board: Board, net: Net, pes: int | None, objective: str) -> Plan:
    engines = with_core(plugins_of(board), board)
    placed = net.with_ops(tuple(op if op.engine in engines else op.placed(CORE) for op in net.ops))
    return plan_with_kernels(Problem(Graph(placed), board, engines, max_pes=pes), objective).plan


@pytest.mark.parametrize("seed", first_of((3, 0, 5, 1, 2, 4), 2))
@pytest.mark.parametrize(
    ("board", "kilobytes", "pes"),
    [
        ("nucleo-l4r5zi", 32, 1),
        ("nucleo-l4r5zi", 96, 1),
        ("pico", 64, 1),
        ("mps2-an386", 128, 1),
        ("pe-mesh", 32, 4),
        ("pe-mesh", 128, 2),
    ],
)
def test_latency_never_loses_to_memory(board: str, kilobytes: int, pes: int, seed: int) -> None:
    where, net = with_memory(board, kilobytes), random_net(seed)
    fast, small = (predicted_on(where, net, pes, objective) for objective in ("latency", "memory"))
    assert fast.predicted.latency_cycles <= small.predicted.latency_cycles


def test_weights_are_kept_as_bytes_where_wider_ones_would_wait_in_flash() -> None:
    """With 32 KB of RAM, nearly all of 80 KB of weights stay in flash. Each weight is read once."""
    b = OneScale("dense")
    net = b.net(b.dense(b.input(1, 640), 128))
    crowded = predicted_on(with_memory("nucleo-l4r5zi", 32), net, 1, "latency")
    assert crowded.pes[0].memory.constants < 1.1 * 640 * 128
