"""The plan's predicted cycles of each tile on the MAC array, against the emulator's own record of a frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.nets import conv, loud
from accel.run_net import run_net
from npukit.board.board import load_board
from npukit.net.net import Net
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def rows_of_features() -> Net:
    b = Builder("rows")
    return b.net(b.dense(b.dense(b.input(1, 20, 16), 128), 24))


def streamed() -> Net:
    """More weights than a PE can hold: weights arrive from DRAM through the port that the array uses too."""
    b = Builder("streamed")
    x = b.input(1, 300)
    for outputs in (250, 350, 200, 40):
        x = b.dense(x, outputs)
    return b.net(x)


def deep() -> Net:
    """Sums of 18,000 products, which the core adds up from parts."""
    return loud(conv(3, 4, 2000, 3))


@pytest.mark.exhaustive
@pytest.mark.parametrize("net", [rows_of_features(), streamed(), deep()])
def test_every_cycle_is_foreseen(net: Net, tmp_path: Path) -> None:
    ran = run_net(net, BOARD, tmp_path)
    assert ran.validation.passed
    steps = [step for step in ran.plan.pes[0].computes() if step.engine == "mac_array"]
    assert ran.bench.latency_cycles == pytest.approx(ran.plan.predicted.latency_cycles, rel=0.05)
    work = sum(step.predicted_cycles for step in steps if not step.scratch)
    assert work == 0 or ran.worked == pytest.approx(work, rel=0.05)
    assert any(step.stolen for step in steps) == ran.plan.streams
