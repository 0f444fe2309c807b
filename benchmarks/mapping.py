"""Scaling of a model over a board's PEs: predicted cycles of one frame, and the planner's time.

python benchmarks/mapping.py model.tflite ... --board pe-mesh --pes 1 2 4 8 16
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.interface import Accelerator
from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.frontend.models import load_net_from_model
from npukit.net.cost import macs
from npukit.net.net import Net
from npukit.plan.planner import OBJECTIVES, plan_network

MACS_PER_CYCLE = 64


def main() -> None:
    options = _options()
    board = load_board(options.board)
    engines = engines_of(board)
    print(f"{'model':24}{'PEs':>5}{'used':>6}{'latency':>12}{'interval':>12}{'use of MACs':>13}{'seconds':>9}")
    for model in options.models:
        net = assign_engines(load_net_from_model(model), engines)
        for pes in options.pes:
            print(f"{model.stem[:23]:24}{pes:5}{_row(net, board, engines, pes, options.objective)}", flush=True)


def _row(net: Net, board: Board, engines: Mapping[str, Accelerator], pes: int, objective: str) -> str:
    start = perf_counter()
    try:
        plan = plan_network(net, board, engines, objective=objective, max_pes=pes)
    except DoesNotFit as error:
        return f"  {error.message}"
    cycles, used = plan.predicted, len(plan.pes)
    share = sum(macs(net, op) for op in net.ops) / (cycles.interval_cycles * used * MACS_PER_CYCLE)
    seconds = perf_counter() - start
    return f"{used:6}{cycles.latency_cycles:12,}{cycles.interval_cycles:12,}{share:13.1%}{seconds:9.2f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--pes", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--objective", default="latency", choices=sorted(OBJECTIVES))
    return parser.parse_args()


if __name__ == "__main__":
    main()
