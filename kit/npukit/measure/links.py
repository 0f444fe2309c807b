"""Bytes that a frame moves over each link of the network-on-chip: known from the plan."""

from __future__ import annotations

from collections import Counter

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.tensors.routes import Link, Routes


def link_bytes(board: Board, net: Net, plan: Plan) -> Counter[Link]:
    """Bytes over each link in a frame, or in the frames that the plan takes together."""
    found: Counter[Link] = Counter()
    if board.noc is None:
        return found
    routes = Routes(board)
    ways: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for message in plan.messages:
        targets = tuple([landing.pe for landing in message.landings if landing.pe < DRAM])
        ways[_router(board, message.source_pe), targets] += _bytes(net, message)
    for (source, targets), moved in ways.items():
        for link in routes.tree(source, targets):
            found[link] += moved
    return found


def _router(board: Board, place: int) -> int:
    """The DRAM of a chip is at its first PE's router."""
    return place if place < DRAM else (place - DRAM) * board.mesh.pes.count


def _bytes(net: Net, message: Message) -> int:
    item = np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1
    return message.source.box.elements * item
