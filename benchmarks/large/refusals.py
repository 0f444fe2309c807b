"""Refusals of networks too large for a board: processor seconds after the import, and the missing bytes.

    python benchmarks/large/refusals.py MODEL... [--float] [--on BOARD:PES[:OBJECTIVE]...]
    python benchmarks/large/refusals.py MODEL... --drafts

Each model is imported, with `--io int8`, `layout=NHWC` and `--calibration NAME.npz` (beside the model) where possible,
then planned on each board and number of PEs. A network that fits is reported as fitting. With `--drafts` nothing is
planned. Printed is a lower bound on the bytes missing in the leanest draft on 1, 4 and 16 PEs of `pe-mesh`, the basis
of a refusal. `refusals.md` has the tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.state import commit

from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.search.layout_search import LatencySearch
from npukit.plan.search.leanest import HASTY, leanest
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.progress import Silent

WHERE = ("pe-mesh:1", "pe-mesh:4", "pe-mesh:16", "pe-mesh:16:throughput", "mps2-an386:1", "nucleo-h743zi:1")
DRAFTED = (1, 4, 16)
"""Numbers of PEs of `pe-mesh` used with `--drafts`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--on", nargs="+", default=WHERE, metavar="BOARD:PES[:OBJECTIVE]")
    parser.add_argument("--float", action="store_true", help="float models stay so")
    parser.add_argument("--drafts", action="store_true")
    given = parser.parse_args()
    for model in given.models:
        with suppress(NpukitError):  # a model that the options do not suit
            for line in drafts(model) if given.drafts else refusals(model, given.on, in_float=given.float):
                print(line, flush=True)


def imported(model: Path, board: str, pes: int, *, in_float: bool = False) -> Prepared:
    """A model imported in float, or with the options for the smallest plan, as far as the model accepts them."""
    samples = model.with_suffix(".npz")
    calibrations = [samples, None] if samples.is_file() and not in_float else [None]
    fault = NpukitError("not tried")
    for calibration, preprocess in product(calibrations, (("layout=NHWC",), ())):
        try:
            io = "file" if in_float else "int8"
            options = Options(pes=pes, io=io, calibration=calibration, preprocess=preprocess, in_float=in_float)
            return prepare(model, load_board(board), options, Silent())
        except NpukitError as error:
            fault = error
    raise fault


def refusals(model: Path, places: Sequence[str], *, in_float: bool) -> Iterator[str]:
    """Rows of the table: a network on several boards."""
    for place in places:
        board, pes, *objective = place.split(":")
        yield refusal(imported(model, board, int(pes), in_float=in_float), model.stem, board, pes, *objective)


def refusal(prepared: Prepared, name: str, board: str, pes: str, objective: str = "latency") -> str:
    """A row of the table: a network on a board."""
    began = seconds()
    try:
        plan = plan_on(load_board(board), prepared, Options(pes=int(pes), objective=objective), Silent()).plan
        told = f"fits, {plan.predicted.latency_cycles:,} cycles"
    except DoesNotFit as error:
        told = f"{error.message.split(':')[0]}; {'; '.join(error.tries)}"
    return f"| {name} | {board}, {pes}, {objective} | {seconds() - began:.1f} | {told} | {commit()} |"


def drafts(model: Path) -> list[str]:
    """The row of a model: a lower bound on the missing bytes of the leanest draft, for each of `DRAFTED`."""
    prepared, board = imported(model, "pe-mesh", DRAFTED[-1]), load_board("pe-mesh")
    problems = [Problem(Graph(prepared.net), board, prepared.engines, max_pes=pes) for pes in DRAFTED]
    lacking = (leanest(each, LatencySearch(each, HASTY)).missing for each in problems)
    return [f"| {model.name} | {' | '.join(f'{missing:,}' for missing in lacking)} | {commit()} |"]


def seconds() -> float:
    """Processor seconds of this process and its children."""
    used = (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main()
