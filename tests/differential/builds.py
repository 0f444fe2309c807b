"""Networks side by side as firmware for a few PEs, compared with the integer reference on the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from frontend.onnx_nodes_in_c import merged
from fuzz.splits import Example, emulated
from npukit.accel.engines import plugins_of, with_core
from npukit.board.board import load_board
from npukit.measure.cases import Cases
from npukit.measure.validate import validate
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.passes import PLACING, PassOptions, run_passes
from npukit.plan.planner import plan_network
from npukit.progress import Silent

PES = 3


def differing(nets: Sequence[tuple[Net, Sequence[np.ndarray]]], folder: Path) -> dict[int, str]:
    """The first wrong tensor of each network that differs from its reference, by number."""
    board = load_board("pe-mesh")
    engines = with_core(plugins_of(board))
    net = run_passes(merged([each for each, _ in nets]), PLACING, PassOptions(engines))
    plan = plan_network(net, board, engines, max_pes=PES)
    expected = [array for each, given in nets for array in run_reference(each, list(given))]
    cases = Cases(
        tuple(array[None] for _, given in nets for array in given),
        {at: array[None] for at, array in enumerate(expected)},
    )
    with emulated(Example(net, board, plan, engines), folder) as target:
        found = validate(target, net, plan, cases, Silent()).mismatches
    return {int(each.tensor.split("_")[0][1:]): f"on the emulator: {each}" for each in reversed(found)}
