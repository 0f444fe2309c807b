"""More PEs, more chips or more memory never make the figure of the objective worse, for random networks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from math import inf

import pytest

from helpers import first_of
from npukit.board.board import Board, load_board
from npukit.errors import DoesNotFit
from npukit.net.net import Net
from npukit.plan.planner import plan_network
from npukit.plan.search.search import OBJECTIVES
from plan.boards import two_chips, with_memory
from plan.engines import engines
from plan.networks import Builder

PES = [(load_board("pe-mesh"), pes) for pes in (1, 2, 4)]
CHIPS = [(two_chips(), pes) for pes in (6, 12)]
MEMORY = [(with_memory(kilobytes), 2) for kilobytes in (24, 32, 64)]


def random_net(seed: int) -> Net:
    """Convolutions, depthwise convolutions and sums, then a classifier or an image."""
    b, chance = Builder(f"random{seed}", seed), random.Random(seed)
    size = chance.randint(6, 20), chance.randint(6, 20), chance.choice((1, 3, 8))
    x = b.conv(b.input(1, *size), chance.choice((8, 16, 32)), 3, chance.choice((1, 2)))
    for _ in range(chance.randint(0, 4)):
        kind, channels = chance.choice(("conv", "wide", "depthwise", "residual")), b.tensors[x].shape[-1]
        if kind == "conv":
            x = b.conv(x, chance.choice((8, 16, 24, 48)), chance.choice((1, 3)), chance.choice((1, 2)))
        elif kind == "wide":
            x = b.conv(x, 96, 1)
        elif kind == "depthwise":
            x = b.depthwise(x)
        else:
            x = b.add(x, b.conv(x, channels, 3))
    classes = chance.choice((2, 10))
    return b.net(b.softmax(b.dense(b.flatten(b.global_pool(x)), classes)) if chance.random() < 0.6 else x)


def figure(net: Net, board: Board, pes: int, objective: str) -> float:
    try:
        plan = plan_network(net, board, engines(board), objective=objective, max_pes=pes)
    except DoesNotFit:
        return inf
    return OBJECTIVES[objective].figure(plan)[0]


@pytest.mark.parametrize(
    ("places", "objective", "seed"),
    [
        *first_of([(PES, "latency", seed) for seed in (14, 4, 3, 12, 13, 0, 1, 2)], 2),
        *first_of([(PES, "memory", seed) for seed in (11, 2, 8, 13)]),
        *first_of([(PES, "throughput", seed) for seed in (4, 14, 3)], 1),
        *first_of([(CHIPS, objective, seed) for objective in OBJECTIVES for seed in (4, 3)], 1),
        *first_of([(MEMORY, objective, seed) for objective in OBJECTIVES for seed in (1, 0, 3)], 1),
    ],
    ids=lambda value: f"{len(value)} places" if isinstance(value, list) else str(value),
)
def test_more_never_hurts(places: Sequence[tuple[Board, int]], objective: str, seed: int) -> None:
    """`places`: boards and numbers of PEs, each with more than the one before."""
    net = random_net(seed)
    found = [figure(net, board, pes, objective) for board, pes in places]
    assert all(more <= less for less, more in pairwise(found)), found
