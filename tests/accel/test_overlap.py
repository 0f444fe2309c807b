"""Accelerators that run in parallel with the core and with each other: in the plan, the C and the cycles."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from accel.boards import with_accelerator
from accel.run_net import Ran, run_net
from helpers import CHECKOUT
from npukit.board.board import Board, load_board
from npukit.net.net import Net
from npukit.plan.ir.plan import Join
from plan.networks import Builder

GRAPHNPU = CHECKOUT / "examples/accelerators/graphnpu"


class Branches(Builder):
    """A builder of branches."""

    def convolutions(self, source: str) -> str:
        return self.conv(self.conv(source, 64, 3), self.tensors[source].shape[-1], 3)


@pytest.fixture(scope="module")
def with_graph_npu(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """A mesh whose PEs have a graph NPU that is slow at pools, and a MAC array too narrow for convolutions."""
    slot = (GRAPHNPU / "graphnpu.toml").read_text().partition("[[accelerator]]\n")[2]
    slot = slot.replace("\nbytes_per_cycle = 16", "\nbytes_per_cycle = 1")
    lines = slot.replace('"graphnpu" #', f'"{(GRAPHNPU / "graphnpu").as_posix()}" #').splitlines()
    path = Path(with_accelerator(tmp_path_factory.mktemp("board"), "pe-mesh", *lines, own=True))
    path.write_text(path.read_text().replace("accumulator_bits = 29", "accumulator_bits = 12"))
    return load_board(str(path))


def core_beside_array() -> Net:
    b = Branches("beside", seed=1)
    x = b.input(1, 16, 16, 4)
    convolved, weighed = b.convolutions(x), b.softmax(x)
    return b.net(b.add(b.pool(convolved, 2, 1), weighed))


def three_side_by_side() -> Net:
    b = Branches("three", seed=2)
    x, z = b.input(1, 16, 16, 8), b.input(1, 16, 16, 8)
    weighed, pooled = b.softmax(x), b.pool(b.pool(z, 3, 1), 3, 1)
    return b.net(weighed, pooled, b.convolutions(x))


def cycles_by_engine(ran: Ran) -> dict[str, int]:
    """Predicted cycles of each engine, summed over the engine's layers."""
    found: dict[str, int] = {}
    for layer in ran.bench.layers:
        found[layer.engine] = found.get(layer.engine, 0) + layer.predicted_cycles
    return found


def check(ran: Ran) -> int:
    """Check outputs and predicted cycles. Returns the measured cycles of a frame."""
    assert ran.validation.passed, ran.validation.mismatches
    assert ran.bench.latency_cycles is not None
    assert ran.bench.predicted_latency_cycles == pytest.approx(ran.bench.latency_cycles, rel=0.1)
    return ran.bench.latency_cycles


@pytest.mark.exhaustive
def test_the_core_works_while_a_chain_runs(tmp_path: Path) -> None:
    ran = run_net(core_beside_array(), load_board("pe-mesh"), tmp_path)
    apart = cycles_by_engine(ran)
    assert set(apart) == {"cpu", "mac_array"}
    assert min(apart.values()) > 10_000
    assert check(ran) < sum(apart.values()) - 0.8 * min(apart.values())
    assert ran.c.count("mac_array_submit") == ran.c.count("mac_array_wait") == 1


@pytest.mark.exhaustive
def test_two_accelerators_and_the_core_side_by_side(with_graph_npu: Board, tmp_path: Path) -> None:
    ran = run_net(three_side_by_side(), with_graph_npu, tmp_path)
    apart = cycles_by_engine(ran)
    assert set(apart) == {"cpu", "mac_array", "graphnpu"}
    hidden = sum(apart.values()) - max(apart.values())
    assert check(ran) < sum(apart.values()) - 0.7 * hidden
    assert {step.engine for step in ran.plan.pes[0].steps if isinstance(step, Join)} == {"mac_array", "graphnpu"}


@pytest.mark.exhaustive
def test_without_an_order_for_it_less_goes_on_at_once(with_graph_npu: Board, tmp_path: Path) -> None:
    ordered = run_net(three_side_by_side(), with_graph_npu, tmp_path / "ordered")
    as_it_is = run_net(three_side_by_side(), with_graph_npu, tmp_path / "as it is", lambda net, _: net)
    assert check(ordered) < check(as_it_is)


def test_neighbours_on_one_engine_share_buffers(tmp_path: Path) -> None:
    """Each op of a chain reads the output of the op before: the same address, and no move in between."""
    b = Branches("chain", seed=3)
    ran = run_net(b.net(b.convolutions(b.convolutions(b.input(1, 8, 8, 8)))), load_board("pe-mesh"), tmp_path)
    assert check(ran)
    steps = list(ran.plan.pes[0].computes())
    assert len(steps) == len(ran.plan.pes[0].steps) == 4
    for before, after in pairwise(steps):
        assert after.inputs[0] == before.output
    assert ran.c.count("mac_array_run(") == 1
