"""Networks planned and not built: predicted cycles, use of the arrays and processor seconds, or a refusal.

    python benchmarks/planner.py MODEL... [--on BOARD:PES[:OBJECTIVE]...] [--float] [--worth]

`BOARD` is a name or the path of a board file. A float model is calibrated with `NAME.npz` beside it, if there is one.
Inputs are NHWC in int8 as far as the model accepts that. Seconds do not include the import.

`--worth` plans again without each strategy that took part, and prints by how much the objective's figure is worse.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.state import commit, processor_seconds

from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.net.ops.table import total_macs
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.search.candidate import Strategy
from npukit.plan.search.search import OBJECTIVES, Search
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent

PLACES = ("pe-mesh:1", "pe-mesh:4", "pe-mesh:16", "pe-mesh:16:throughput")
MACS_PER_CYCLE = 64
HEAD = ("network", "board, PEs, objective", "PEs used", "cycles", "between frames", "of peak", "seconds", "commit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--on", nargs="+", default=PLACES, metavar="BOARD:PES[:OBJECTIVE]")
    parser.add_argument("--float", action="store_true", help="computes a float model in float")
    parser.add_argument("--worth", action="store_true", help="plans without each strategy as well")
    given = parser.parse_args()
    if given.worth:
        show_worth(given.models, given.on)
        return
    print(f"| {' | '.join(HEAD)} |\n|---|---|--:|--:|--:|--:|--:|---|")
    for model, place in product(given.models, given.on):
        board, pes, *objective = place.split(":")
        options = Options(pes=int(pes), objective=objective[0] if objective else "latency", in_float=given.float)
        print(f"| {model.stem} | {place} | {row(model, board, options)} | {commit()} |", flush=True)


def show_worth(models: Sequence[Path], places: Sequence[str]) -> None:
    """Print a row for each strategy of each plan: the figure without it."""
    print("| network | board, PEs, objective | figure | without | figure |\n|---|---|--:|---|--:|")
    for model, place in product(models, places):
        board, pes, *objective = place.split(":")
        options = Options(pes=int(pes), objective=objective[0] if objective else "latency")
        prepared = imported(model, board, options)
        whole, strategies = planned_without("", prepared, board, options)
        for name in strategies:
            figure, _ = planned_without(name, prepared, board, options)
            less = f"{figure:,.0f} ({figure / whole - 1:+.1%})" if figure < inf else "does not fit"
            print(f"| {model.stem} | {place} | {whole:,.0f} | {name} | {less} |", flush=True)


def planned_without(name: str, prepared: Prepared, board: str, options: Options) -> tuple[float, Sequence[str]]:
    """The figure of the objective without a strategy, infinite if nothing fits, and the strategies that took part."""
    run = Search.run

    def without(self: Search, problem: Problem, strategies: Iterable[Strategy]) -> None:
        run(self, problem, (each for each in strategies if each.__name__ != name))

    with mock.patch.object(Search, "run", without):
        try:
            planned = plan_on(load_board(board), prepared, options, Silent()).planned
        except DoesNotFit:
            return inf, ()
    figures = OBJECTIVES[planned.plan.objective].figure(planned.plan)
    return figures[0], tuple(dict.fromkeys(line.strategy for line in planned.log))


def row(model: Path, board: str, options: Options) -> str:
    """The cells of a plan, or the refusal in place of them."""
    began = processor_seconds()
    try:
        prepared = imported(model, board, options)
        began = processor_seconds()
        plan = plan_on(load_board(board), prepared, options, Silent()).plan
    except NpukitError as error:
        return f"{error.message.split(':')[0]}; {'; '.join(error.tries)} | | | | {processor_seconds() - began:.1f}"
    cycles, used = plan.predicted, plan.pes_used
    share = total_macs(prepared.net) / (cycles.interval_cycles * used * MACS_PER_CYCLE)
    taken = processor_seconds() - began
    return f"{used} | {cycles.latency_cycles:,} | {cycles.interval_cycles:,} | {share:.1%} | {taken:.1f}"


def imported(model: Path, board: str, options: Options) -> Prepared:
    """The model, imported with the options for the smallest plan, as far as the model accepts them."""
    samples = model.with_suffix(".npz")
    calibrations = [samples, None] if samples.is_file() and not options.in_float else [None]
    fault = NpukitError("not tried")
    for calibration, preprocess in product(calibrations, (("layout=NHWC",), ())):
        io = "file" if options.in_float else "int8"
        wanted = replace(options, io=io, calibration=calibration, target_db=0, preprocess=preprocess)
        try:
            return prepare(model, load_board(board), wanted, Silent())
        except NpukitError as error:
            fault = error
    raise fault


if __name__ == "__main__":
    main()
