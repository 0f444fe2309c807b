"""Effect of each strategy of the planner: the same networks planned without it.

    python benchmarks/large/strategies.py OBJECTIVE MODEL... [--board NAME] [--pes COUNT] [--strategies NAME ...]
        [--preprocess layout=NHWC]

OBJECTIVE is `latency` or `throughput`. A line shows, model by model, the increase of predicted cycles without the
strategy, and the ratio of the planner's processor seconds for all models. `docs/planner.md` describes the strategies.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

from planner_constants import compared, constant, planned, prepared, with_models

from npukit.plan.batch_search.data_parallel import OTHER_WAYS
from npukit.plan.search import tries
from npukit.plan.tensors.graph import Aliases, Graph


def _none(*_: Any) -> None:
    return None


def _empty(*_: Any) -> dict[str, Any]:
    return {}


def _same(given: Any) -> Any:
    return given


def _no_aliases(graph: Graph, *_: Any) -> Aliases:
    return {op.name: () for op in graph.ops}


class NoPlans:
    """A stand-in for a search: it finds no plan."""

    def __init__(self, _: Any) -> None:
        self.best = _none


WITHOUT: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "latency": {
        "split-K": {"k_split.worth_trying": _empty},
        "list scheduling": {"search.list_schedule.scheduled_plan": _none},
        "walk to neighbours": {"search.objectives._walked": _same},
        "fewer PEs": {"search.objectives._faster_on_fewer": _same},
        "draft and rank": {"search.wide_frame.WideFrame": NoPlans},
        "stream weights": {"search.objectives._from_dram": _none},
        "fuse depth-first": {"batch.channel_bands.bands_for": _empty},
        "in-place outputs": {"tensors.graph.aliases": _no_aliases},
    },
    "throughput": {
        "replicate": {
            "batch_search.throughput._Batches": NoPlans,
            "batch_search.data_parallel.replicated_plan": _none,
            "batch_search.low_memory.low_memory_plan": _none,
        },
        "interleave": {"batch_search.throughput.INTERLEAVED": (1,)},
        "micro-batch": {
            "batch_search.throughput.MICRO_BATCHES": (),
            "batch_search.group_trials.MOST_MICRO_BATCHES": 1,
        },
        "stream weights": {"batch.weight_streaming._heaviest": lambda *_: []},
        "weight tiles of several sizes": {"batch_search.data_parallel.OTHER_WAYS": OTHER_WAYS[:0]},
        "fuse depth-first": {"batch.channel_bands.bands_for": _empty},
        "low memory": {"batch_search.low_memory.low_memory_plan": _none},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("objective", choices=WITHOUT)
    parser.add_argument("--strategies", nargs="*")
    given = with_models(parser)
    board, options, nets = prepared(given, given.objective, "pe-mesh")
    with mock.patch.object(tries, "in_order", map):
        usual = planned(nets, board, options)
        print("| without | " + " | ".join(model.stem for model in given.models) + " | seconds |")
        print("|---|" + "--:|" * (len(nets) + 1))
        for name in given.strategies or WITHOUT[given.objective]:
            with ExitStack() as patches:
                for where, value in WITHOUT[given.objective][name].items():
                    patches.enter_context(constant(f"plan.{where}", value))
                found = planned(nets, board, options)
            print(f"| {name} | {compared(usual, found)}", flush=True)


if __name__ == "__main__":
    main()
