"""Effect of the planner's tuned constants: plans with other values, compared by predicted cycles.

    python benchmarks/large/planner_constants.py SEARCH MODEL... [--board NAME] [--constants NAME ...]
        [--pes COUNT] [--preprocess layout=NHWC]

SEARCH is one of `SEARCHES`: `batches`, `small-batches` or `low-memory` for throughput; `frame`, `list-schedule` or
`wide-frame` for latency. Each constant of the search is set in turn to each of its other values, and each model is
planned. A line shows, model by model, how much longer the predicted interval is than with the current value, and the
ratio of the planner's processor seconds for all models.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock

from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.layout.layout_search import Effort
from npukit.progress import Silent


@dataclass(frozen=True)
class Search:
    """A search of the planner: objective, a board on which its constants matter, and other values of the constants."""

    objective: str
    board: str
    tuned: Mapping[str, tuple[Any, ...]]


SEARCHES: Mapping[str, Search] = {
    "batches": Search(
        "throughput",
        "pe-mesh-152",
        {
            "batch.schedule.FETCH_PARTS": (1, 4, 16),
            "batch.channel_bands.CROWDED": (0.35, 0.7),
            "batch.schedule.DEFERRED": (2, 8, inf),
            "batch.weight_tiles.LARGEST_WEIGHT_TILE": (1, 4),
            "batch.weight_tiles.MOST_WEIGHT_TILE_BYTES": (16 << 10, 64 << 10),
            "strategies.groups.PRICE": (0.0, 0.03, 0.12),
            "strategies.groups.HEAVY_MOVES": (1.0, 6.0),
            "strategies.groups.OTHER_TILES": ((),),
            "strategies.groups.PATIENCE": (1, 16),
            "strategies.groups.SETTLED": (0.8, 1.0),
            "strategies.groups.UNSETTLED": (0.0, 0.05),
            "strategies.groups.WELL_USED": (0.85, 0.97),
            "strategies.groups.MOST_MICRO_BATCHES": (1, 2, 8),
            "strategies.groups.MOST_EMITTED": (0, 40_000),
            "batch.batch_emitter.NEARLY_FITS": (0, 24 << 10),
            "batch.weight_tiles.MOST_LISTED": (48 << 10, 112 << 10),
            "predict.memory.PACKINGS": (0,),
            "search.search.PROBES": (1 / 3, 1),
        },
    ),
    "small-batches": Search(
        "throughput",
        "pe-mesh",
        {
            "strategies.groups.INTERLEAVED": ((1,), (1, 2), (1, 2, 3, 4, 6, 8)),
            "strategies.groups.MOST_MICRO_BATCHES": (1, 2, 8),
            "strategies.groups.WORTH": (0.9, 1.0),
            "strategies.groups.WHOLE": (0, 50_000),
        },
    ),
    "low-memory": Search(
        "throughput",
        "pe-mesh-152",
        {
            "emit.regions.SMALL_PART": (1.25, 3.0),
            "strategies.low_memory.SIZES": ((38, 49, 76),),
            "strategies.low_memory.SEARCHED": (0.4, 0.6),
            "strategies.low_memory.WEIGHT_TILE": (8_000, 18_000),
            "strategies.low_memory.PRICE": (0.0, 0.1),
            "strategies.low_memory.MOVES_WEIGH": (1.0, 12.0),
            "strategies.low_memory.ROOMS": ((0.52, 0.46, 0.4), (0.66, 0.58, 0.52, 0.46, 0.4)),
        },
    ),
    "frame": Search(
        "latency",
        "pe-mesh",
        {
            "strategies.layouts.PRICES": ((0.0, 0.2, 2.0),),
            "strategies.layouts.WEIGHTS": ((), (1.1, 0.9, 1.2, 0.8, 1.5, 0.5, 2.0, 0.3)),
            "strategies.layouts.WALKED": (0, 20_000, 180_000),
            "strategies.layouts.NEAREST": (4, 64),
            "strategies.streams.PRICES": ((0.0,), (0.0, 0.06, 0.6)),
            "strategies.streams.FRUGAL": (2, 8),
            "layout.neighbours.WIDTH": (6, 30),
            "layout.splits.SHORT": (0, 2400),
            "planner.SHORT": (0, 10_000),
            "predict.memory.PACKINGS": (1, 200),
            "k_split.PRODUCTS": (320, 1280),
        },
    ),
    "list-schedule": Search(
        "latency",
        "pe-mesh",
        {
            "layout.list_schedule.SPLITS": (1, 4),
            "layout.list_schedule.ROOMS": ((3 / 4,), (1 / 2,), (7 / 8, 3 / 4, 5 / 8, 1 / 2, 3 / 8)),
            "layout.list_schedule.ROOT": (0.0, 1 / 4, 3 / 4),
            "layout.list_schedule.AHEAD": (0, 1),
            "layout.list_schedule.PIECE": (0.0, 16.0),
            "layout.list_schedule.LOAD": (0.0, 1 / 64, 1 / 4),
            "layout.list_schedule.BORDER": (0, 400, 40_000),
            "tensors.boxes.GRAINS": ((16, 8), (16, 1)),
        },
    ),
    "wide-frame": Search(
        "latency",
        "pe-mesh-152",
        {
            "strategies.drafts.PRICES": ((0.0, 0.1, 0.3), (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0)),
            "strategies.drafts.ROOMS": ((3 / 8,), (1 / 2, 3 / 8, 1 / 4, 1 / 6)),
            "strategies.drafts.EFFORT": (Effort(6, 20, priced=True), Effort(10, 40)),
            "strategies.drafts.PES_OF_A_PREFETCHER": (32, 152),
            "strategies.drafts.SEARCHED": (400,),
            "strategies.drafts.ORDERS": (10 << 10, 30 << 10),
            "strategies.drafts.REPAIRS": (1, 6),
            "layout.frame_memory.SMALLEST": (0, 4 << 10),
            "layout.frame_memory.WAITS_WEIGH": (0, 1, 16),
        },
    ),
}


@dataclass(frozen=True)
class Planned:
    intervals: tuple[float, ...]
    seconds: float


def planned(nets: Sequence[Prepared], board: Board, options: Options) -> Planned:
    """The predicted intervals of all nets."""
    began, intervals = process_time(), list[float]()
    for net in nets:
        try:
            plan = plan_on(board, net, options, Silent()).plan
            intervals.append(plan.predicted.latency_cycles / plan.frames_of_all)
        except DoesNotFit:
            intervals.append(inf)
    return Planned(tuple(intervals), process_time() - began)


@contextmanager
def constant(name: str, value: Any) -> Iterator[None]:
    """Set a constant to another value, in its own module and in all modules that import it."""
    module, _, key = f"npukit.{name}".rpartition(".")
    old = getattr(sys.modules[module], key)
    holders = [each for each in list(sys.modules.values()) if getattr(each, "__dict__", {}).get(key) is old]
    patches = [mock.patch.object(each, key, value) for each in holders if each.__name__.startswith("npukit.")]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def with_models(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The parsed arguments, among them models, board, PEs and preprocessing."""
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board")
    parser.add_argument("--pes", type=int)
    parser.add_argument("--preprocess", action="append", default=[])
    return parser.parse_args()


def prepared(given: argparse.Namespace, objective: str, board: str) -> tuple[Board, Options, list[Prepared]]:
    """The requested board or else `board`, the options, and each model prepared for the planner."""
    found = load_board(given.board or board)
    options = Options(objective=objective, preprocess=tuple(given.preprocess), io="int8", pes=given.pes)
    return found, options, [prepare(model, found, options, Silent()) for model in given.models]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("search", choices=SEARCHES)
    parser.add_argument("--constants", nargs="*")
    given = with_models(parser)
    search = SEARCHES[given.search]
    board, options, nets = prepared(given, search.objective, search.board)
    usual = planned(nets, board, options)
    print("| constant | value | " + " | ".join(model.stem for model in given.models) + " | seconds |")
    print("|---|---|" + "--:|" * (len(nets) + 1))
    for name in given.constants or search.tuned:
        for value in search.tuned[name]:
            with constant(f"plan.{name}", value):
                found = planned(nets, board, options)
            print(row(name, value, usual, found), flush=True)


def row(name: str, value: Any, usual: Planned, found: Planned) -> str:
    return f"| `{name}` | {value} | {compared(usual, found)}"


def compared(usual: Planned, found: Planned) -> str:
    """The last cells of a row: the relative increase of each interval, and the ratio of seconds."""
    pairs = zip(found.intervals, usual.intervals, strict=True)
    longer = ("does not fit" if now == inf else f"{now / before - 1:+.1%}" for now, before in pairs)
    return " | ".join(longer) + f" | x {found.seconds / usual.seconds:.2f} |"


if __name__ == "__main__":
    main()
