"""Traffic of a frame, derived from the plan: bytes over links, cycles at ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.predict.noc import element_bytes, packets_of
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
            ends[place >= DRAM] += message_bytes(net, message)
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
        targets = tuple([routes.router(landing.pe) for landing in message.landings])
        ways[routes.router(message.source_pe), targets] += message_bytes(net, message)
    for (source, targets), moved in ways.items():
        for link in routes.tree(source, targets):
            found[link] += moved
    return found


def message_bytes(net: Net, message: Message) -> int:
    return message.source.box.elements * element_bytes(net, message)


def port_cycles(net: Net, plan: Plan) -> Mapping[int, int]:
    """Cycles of a frame in which messages occupy each PE's SRAM port, 16 bytes per cycle."""
    found: Counter[int] = Counter()
    for message, packets in zip(plan.messages, packets_of(net, plan), strict=True):
        for place in (message.source_pe, *(landing.pe for landing in message.landings)):
            found[place] += sum(packet.flits for packet in packets)
    return found
