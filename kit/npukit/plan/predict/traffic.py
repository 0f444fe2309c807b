"""Traffic of a frame, derived from the plan: bytes over links, cycles at ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.tensors.dma_copies import copies
from npukit.plan.tensors.routes import Link, Routes


@dataclass(frozen=True)
class FrameTraffic:
    """Bytes of a frame: read and written by messages in PEs' memories, over links times hops, from and to DRAM."""

    sram_bytes: float = 0
    byte_hops: float = 0
    dram_bytes: float = 0


def traffic_of(board: Board, net: Net, plan: Plan) -> FrameTraffic:
    """The traffic of one frame, averaged over the plan's batch."""
    ends = Counter[bool]()
    for message in plan.messages:
        for place in (message.source_pe, *(landing.pe for landing in message.landings)):
            ends[place >= DRAM] += _bytes(net, message)
    hops = sum(link_bytes(board, net, plan).values())
    return FrameTraffic(ends[False] / plan.frames, hops / plan.frames, ends[True] / plan.frames)


def link_bytes(board: Board, net: Net, plan: Plan) -> Counter[Link]:
    """Bytes over each link per frame, or per batch for a plan with batches."""
    found: Counter[Link] = Counter()
    if board.noc is None:
        return found
    routes = Routes(board)
    ways: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for message in plan.messages:
        targets = tuple([_router(board, landing.pe) for landing in message.landings])
        ways[_router(board, message.source_pe), targets] += _bytes(net, message)
    for (source, targets), moved in ways.items():
        for link in routes.tree(source, targets):
            found[link] += moved
    return found


def _router(board: Board, place: int) -> int:
    """The PE at whose router a place is attached: a chip's DRAM is at the router of the chip's first PE."""
    return place if place < DRAM else (place - DRAM) * board.mesh.pes.count


def _bytes(net: Net, message: Message) -> int:
    return message.source.box.elements * _element_bytes(net, message)


def _element_bytes(net: Net, message: Message) -> int:
    return np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1


def port_cycles(net: Net, plan: Plan) -> Mapping[int, int]:
    """Cycles of a frame in which messages occupy each PE's SRAM port, 16 bytes per cycle."""
    boxes = {(pe.pe, buffer.name): buffer.box for pe in plan.pes for buffer in pe.buffers}
    boxes |= {(DRAM, buffer.name): buffer.box for buffer in plan.dram}
    found: Counter[int] = Counter()
    for message in plan.messages:
        flits = _flits(net, message, boxes)
        found[message.source_pe] += flits
        for landing in message.landings:
            found[landing.pe] += flits
    return found


def _flits(net: Net, message: Message, boxes: Mapping[tuple[int, str], Box]) -> int:
    """The flits of one landing. All landings of a message have the same number."""
    source, landing = boxes[message.source_pe, message.source.buffer], message.landings[0]
    target = boxes[landing.pe, landing.view.buffer]
    return sum(copy.flits for copy in copies(message.source.box, source, target, _element_bytes(net, message)))
