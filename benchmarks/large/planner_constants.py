"""What the planner's tuned constants are worth: plans with other values, compared by their predicted cycles.

    python benchmarks/large/planner_constants.py MODEL... [--board pe-mesh-152] [--constants NAME ...]
        [--preprocess layout=NHWC]

Each constant of `TUNED` is set to each of its other values in turn, with all else as it is, and each model is planned
for throughput. A line says by how much the predicted interval is longer than with the constant as it stands, model by
model, and how many times as many seconds of the processor the planner took for all of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

from npukit.board.board import Board, load_board
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.search import tries
from npukit.progress import Silent

TUNED: Mapping[str, tuple[Any, ...]] = {
    "batch.schedule.FETCH_PARTS": (4, 16),
    "batch.channel_bands.CROWDED": (0.35, 0.7),
    "batch.deferred.DEFERRED": (2, 8),
    "batch.weight_tiles.LARGEST_WEIGHT_TILE": (1, 4),
    "batch.weight_tiles.MOST_WEIGHT_TILE_BYTES": (16 << 10, 64 << 10),
    "batch_search.data_parallel.PRICE": (0.0, 0.03, 0.12),
    "batch_search.data_parallel.COMPARED": (1, 4),
    "batch_search.data_parallel.ROOMS": ((None,), (None, 1 / 2)),
    "batch_search.data_parallel.HEAVY_MOVES": (1.0, 6.0),
    "batch_search.data_parallel.OTHER_WAYS": ((),),
    "batch_search.data_parallel.WORSE": (1, 16),
    "batch_search.data_parallel.FORESEEN": (0.0, 0.05),
    "batch_search.group_trials.WELL_USED": (0.85, 0.97),
    "batch_search.group_trials.MOST_MICRO_BATCHES": (1, 2, 8),
    "emit.regions.SMALL_PART": (1.25, 3.0),
    "k_split.PRODUCTS": (320, 1280),
}


@dataclass(frozen=True)
class Planned:
    intervals: tuple[float, ...]
    seconds: float


def planned(nets: Sequence[Prepared], board: Board, options: Options) -> Planned:
    """Every net planned, in this process alone."""
    began, intervals = process_time(), list[float]()
    for net in nets:
        plan = plan_on(board, net, options, Silent()).plan
        intervals.append(plan.predicted.latency_cycles / plan.frames_of_all)
    return Planned(tuple(intervals), process_time() - began)


@contextmanager
def constant(name: str, value: Any) -> Iterator[None]:
    """A constant of the planner with another value, in its module and all that have it from there."""
    module, _, key = f"npukit.plan.{name}".rpartition(".")
    old = getattr(sys.modules[module], key)
    holders = [each for each in list(sys.modules.values()) if getattr(each, "__dict__", {}).get(key) is old]
    patches = [mock.patch.object(each, key, value) for each in holders if each.__name__.startswith("npukit.plan.")]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="pe-mesh-152")
    parser.add_argument("--constants", nargs="*", default=list(TUNED))
    parser.add_argument("--preprocess", action="append", default=[])
    given = parser.parse_args()
    board = load_board(given.board)
    options = Options(objective="throughput", preprocess=tuple(given.preprocess), io="int8")
    nets = [prepare(model, board, options, Silent()) for model in given.models]
    with mock.patch.object(tries, "in_order", map):
        usual = planned(nets, board, options)
        print("| constant | value | " + " | ".join(model.stem for model in given.models) + " | seconds |")
        print("|---|---|" + "--:|" * (len(nets) + 1))
        for name in given.constants:
            for value in TUNED[name]:
                with constant(name, value):
                    found = planned(nets, board, options)
                print(row(name, value, usual, found), flush=True)


def row(name: str, value: Any, usual: Planned, found: Planned) -> str:
    longer = (f"{now / before - 1:+.1%}" for now, before in zip(found.intervals, usual.intervals, strict=True))
    return f"| `{name}` | {value} | " + " | ".join(longer) + f" | x {found.seconds / usual.seconds:.2f} |"


if __name__ == "__main__":
    main()
