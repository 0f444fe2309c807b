"""The load of a plan by simulation: engines, links, DRAM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.simulate import simulate

ROUNDS = 2


@dataclass(frozen=True)
class Load:
    """Shares of the time that frames take, one behind the other.

    `computing` is the PEs' average, core or accelerator; `busiest_link` the PEs at its ends, none on one PE.
    """

    computing: float
    busiest_link: tuple[int, int] | None
    busiest_link_share: float
    streamed_bytes: int
    """Bytes of constants from DRAM, a batch."""
    fetched_bytes: int
    """Bytes of inputs from DRAM, a batch."""


def load_of(net: Net, board: Board, plan: Plan) -> Load:
    seen = simulate(net, board, plan, ROUNDS)
    time = max(seen.frame_ends[-1], 1)
    link, busy = max(seen.links.items(), key=lambda item: (item[1], item[0]), default=(None, 0))
    fetched = _from_dram(net, plan)
    return Load(
        computing=round(sum(seen.computing.values()) / (time * len(plan.pes)), 4),
        busiest_link=(link.source, link.destination) if link else None,
        busiest_link_share=round(busy / time, 4),
        streamed_bytes=fetched[False],
        fetched_bytes=fetched[True],
    )


def dram_bytes(net: Net, plan: Plan) -> int:
    """The bytes that a batch takes from DRAM."""
    return _from_dram(net, plan).total()


def _from_dram(net: Net, plan: Plan) -> Counter[bool]:
    """Bytes of inputs, and of constants."""
    found: Counter[bool] = Counter()
    for message in plan.messages:
        if message.source_pe == DRAM:
            item = net.tensor(message.tensor).bytes // net.tensor(message.tensor).elements if message.tensor else 1
            found[bool(message.tensor)] += message.source.box.elements * item
    return found
