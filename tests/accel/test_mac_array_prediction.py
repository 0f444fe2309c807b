"""What the plan says each tile takes on the MAC array, beside the emulator's own record of a frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from accel.run_net import run_net
from npukit.board.board import load_board
from npukit.net.net import Net
from plan.networks import Builder

BOARD = load_board("pe-mesh")


def rows_of_features() -> Net:
    b = Builder("rows")
    return b.net(b.dense(b.dense(b.input(1, 20, 16), 128), 24))


def streamed() -> Net:
    """More weights than a PE holds: they arrive from DRAM through the port that the array works through."""
    b = Builder("streamed")
    x = b.input(1, 300)
    for outputs in (250, 350, 200, 40):
        x = b.dense(x, outputs)
    return b.net(x)


@pytest.mark.parametrize("net", [rows_of_features(), streamed()])
def test_every_cycle_is_foreseen(net: Net, tmp_path: Path) -> None:
    ran = run_net(net, BOARD, tmp_path)
    assert ran.validation.passed
    steps = [step for step in ran.plan.pes[0].computes() if step.engine == "mac_array"]
    assert ran.worked == pytest.approx(sum(step.predicted_cycles for step in steps), rel=0.05)
    assert any(step.stolen for step in steps) == ran.plan.streams
