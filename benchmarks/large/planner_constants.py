"""Effect of the tuned constants of the planner and of the core's kernels: plans with other values, compared.

    PYTHONPATH=kit:tests:. python benchmarks/large/planner_constants.py SEARCH MODEL... [--board NAME]
        [--constants NAME ...] [--pes COUNT] [--preprocess layout=NHWC] [--transformers]

SEARCH is one of `SEARCHES`: `batches`, `small-batches` or `low-memory` for throughput; `frame`, `list-schedule` or
`wide-frame` for latency; `kernels` for a single Cortex-M4. Each constant of the search is set in turn to each of its
other values, and each model is planned. A line shows, model by model, how much longer the predicted interval is than
with the current value, and the ratio of the planner's processor seconds for all models. For `kernels` it shows how much
longer the kernels take (instructions and cycles, weighted alike), and in brackets the additional bytes of flash and of
SRAM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any
from unittest import mock

from npukit.accel.cortex_m.code.block import Unrolling
from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.options import Options
from npukit.pipeline import Prepared, plan_on, prepare
from npukit.plan.ir.plan import PePlan, Plan
from npukit.plan.layout.layout_search import Effort
from npukit.progress import Silent


@dataclass(frozen=True)
class Search:
    """A search of the planner: objective, a board on which its constants matter, and other values of the constants.

    `room`: the package of the constants.
    """

    objective: str
    board: str
    tuned: Mapping[str, tuple[Any, ...]]
    room: str = "plan"


SEARCHES: Mapping[str, Search] = {
    "batches": Search(
        "throughput",
        "pe-mesh-152",
        {
            "batch.channel_bands.CROWDED": (0.35, 0.7),
            "batch.weight_tiles.LARGEST_WEIGHT_TILE": (1, 4),
            "batch.weight_tiles.MOST_WEIGHT_TILE_BYTES": (16 << 10, 64 << 10),
            "strategies.streams.PRICE": (0.0, 0.03, 0.12),
            "strategies.groups.MOVES_OF_GROUPS": (1.0, 2.0, 6.0),
            "strategies.groups.OTHER_TILES": ((),),
            "strategies.groups.PATIENCE": (1, 16),
            "strategies.groups.SETTLED": (0.8, 1.0),
            "strategies.groups.WELL_USED": (0.85, 0.97),
            "strategies.groups.MOST_MICRO_BATCHES": (1, 2, 8),
            "strategies.groups.MOST_EMITTED": (0, 40_000),
        },
    ),
    "small-batches": Search(
        "throughput",
        "pe-mesh",
        {
            "strategies.groups.MOST_MICRO_BATCHES": (1, 2, 8),
            "strategies.groups.WHOLE": (0, 50_000),
        },
    ),
    "low-memory": Search(
        "throughput",
        "pe-mesh-152",
        {
            "strategies.low_memory.MOST_GROUPS": (4,),
            "batch.channel_bands.CROWDED": (0.4, 0.6),
            "strategies.streams.PRICE": (0.0, 0.03),
            "strategies.layouts.HEAVY_MOVES": (1.0, 6.0),
            "strategies.low_memory.ROOMS": ((0.52, 0.46, 0.4), (0.66, 0.58, 0.52, 0.46, 0.4)),
        },
    ),
    "frame": Search(
        "latency",
        "pe-mesh",
        {
            "strategies.layouts.PRICES": ((0.0, 0.2, 2.0),),
            "strategies.layouts.HEAVY_MOVES": (1.0, 1.5, 6.0),
            "strategies.layouts.WALKED": (0, 60_000, 180_000),
            "strategies.layouts.NEAREST": (4, 64),
            "strategies.streams.PRICE": (0.0, 0.6),
            "batch.channel_bands.CROWDED": (0.25, 0.75),
            "layout.k_split.PRODUCTS": (320, 1280),
        },
    ),
    "list-schedule": Search(
        "latency",
        "pe-mesh",
        {
            "layout.list_schedule.ROOMS": ((3 / 4,), (1 / 2,), (7 / 8, 3 / 4, 5 / 8, 1 / 2, 3 / 8)),
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
            "strategies.drafts.ORDERS": (10 << 10, 30 << 10),
            "strategies.drafts.REPAIRS": (1, 6),
            "layout.frame_memory.SMALLEST": (0, 4 << 10),
        },
    ),
    "kernels": Search(
        "latency",
        "mps2-an386",
        {
            "network._MACS_PER_BYTE_WORTH": (100_000, 1_000_000),
            "network._WORTH_SAVING": (0.5, 0.9),
            "network._WORTH_SPENDING": (1.0, 1.1),
            "code.gather._UNROLLED_WORDS": (8, 64),
            "code.gather._LOOPED_WORDS": (4, 16),
            "kernels.convolution._UNROLLINGS": ((Unrolling(2, 4),), (Unrolling(8, 32),)),
            "kernels.dense._UNROLLINGS": (((2, 2),), ((8, 20),)),
            "kernels.depthwise._COLUMN_ROUNDS": ((1,), (1, 4)),
            "kernels.pool._UNROLLED_TAPS": (5, 50),
            "kernels.add._UNROLLED": (4, 64),
            "kernels.border._UNROLLED_CHUNKS": (1, 16),
            "kernels.to_planes._UNROLLED_PAIRS": (1, 16),
            "kernels.transpose._UNROLLED_WORDS": (1, 16),
            "kernels.transpose._UNROLLED_BYTES": (4, 64),
            "kernels.product._UNROLLED": (4, 64),
            "kernels.product._AT_ONCE": (1,),
            "kernels.rows.UNROLLED": (4, 64),
            "kernels.written._UNROLLED": (16, 128),
        },
        room="accel.cortex_m",
    ),
}


@dataclass(frozen=True)
class Planned:
    """The plan of each network, or None, and the processor seconds for all."""

    plans: tuple[Plan | None, ...]
    seconds: float


def planned(nets: Sequence[Prepared], board: Board, options: Options) -> Planned:
    """The plans of all nets, made in this process alone."""
    began, plans = process_time(), list[Plan | None]()
    for net in nets:
        try:
            plans.append(plan_on(board, net, options, Silent()).plan)
        except DoesNotFit:
            plans.append(None)
    return Planned(tuple(plans), process_time() - began)


def forget_kernels() -> None:
    """Clear the caches of generated kernels."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("npukit.accel")]
    for each in {id(value): value for names in modules for value in names.values()}.values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


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


def small_transformers(board: Board) -> dict[str, Prepared]:
    """Two small transformers, for images and for tokens."""
    from end_to_end import language_models, transformers

    with TemporaryDirectory() as folder:
        model, samples = Path(folder, "model.onnx"), Path(folder, "samples.npz")
        images = transformers.Sizes(side=8, width=32, heads=4)
        transformers.save_model(model, images)
        transformers.save_samples(samples, images)
        options = Options(calibration=samples, target_db=0, io="int8")
        found = {"2 blocks, images": prepare(model, board, options, Silent())}
        tokens = language_models.Sizes(64, 4, 128, 2, 32)
        states = language_models.save_model(model, tokens)
        language_models.save_samples(samples, tokens)
        options = Options(calibration=samples, target_db=0, io="int8", states=tuple(states.items()))
        return found | {"2 blocks, tokens": prepare(model, board, options, Silent())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("search", choices=SEARCHES)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--board")
    parser.add_argument("--constants", nargs="*")
    parser.add_argument("--pes", type=int)
    parser.add_argument("--preprocess", action="append", default=[])
    parser.add_argument("--transformers", action="store_true", help="two small transformers too")
    given = parser.parse_args()
    search = SEARCHES[given.search]
    board, of_kernels = load_board(given.board or search.board), given.search == "kernels"
    io = "file" if of_kernels else "int8"
    options = Options(objective=search.objective, preprocess=tuple(given.preprocess), io=io, pes=given.pes)
    nets = {model.stem: prepare(model, board, options, Silent()) for model in given.models}
    nets |= small_transformers(board) if given.transformers else {}
    usual = planned([*nets.values()], board, options)
    print("| constant | value | " + " | ".join((*nets, "seconds")) + " |")
    print("|---|---|" + "--:|" * (len(nets) + 1))
    for name in given.constants or search.tuned:
        for value in search.tuned[name]:
            with constant(f"{search.room}.{name}", value):
                if of_kernels:
                    forget_kernels()
                found = planned([*nets.values()], board, options)
            pairs = zip(usual.plans, found.plans, strict=True)
            cells = [(kernels_compared if of_kernels else compared)(*pair) for pair in pairs]
            print(f"| `{name}` | {value} | {' | '.join(cells)} | x {found.seconds / usual.seconds:.2f} |", flush=True)


def compared(usual: Plan | None, found: Plan | None) -> str:
    """The relative increase of the interval."""
    before, now = (plan.predicted.latency_cycles / plan.frames_of_all if plan else inf for plan in (usual, found))
    return "does not fit" if now == inf else f"{now / before - 1:+.1%}"


def kernels_compared(usual: Plan | None, found: Plan | None) -> str:
    """The relative increase of the core's cost, and the additional bytes of flash and of SRAM."""
    if usual is None or found is None:
        return "does not fit"
    before, now = usual.pes[0], found.pes[0]
    flash = now.memory.code + now.memory.constants - before.memory.code - before.memory.constants
    sram = now.memory.activations - before.memory.activations
    return f"{_cost(now) / _cost(before) - 1:+.1%} ({flash:+,}, {sram:+,})"


def _cost(core: PePlan) -> int:
    return sum(step.predicted_cycles for step in core.computes())


if __name__ == "__main__":
    main()
