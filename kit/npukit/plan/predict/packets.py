"""Packets of a plan on the network-on-chip: the descriptors of its messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from npukit.board.noc import DRAM
from npukit.net.net import Net
from npukit.plan.ir.plan import Buffer, Message, Plan
from npukit.plan.tensors.dma_copies import Copy, copies


@dataclass(frozen=True)
class Packet:
    """One descriptor. The last one of a message carries the flags, and that of the sender if it `counts_as_sent`."""

    message: Message
    flits: int
    last: bool
    counts_as_sent: bool
    bytes: int = 0

    def is_signal_of(self, pe: int) -> bool:
        """True if only the flags matter, and the PE itself sends it."""
        return not self.message.tensor and self.message.source_pe == pe

    def one_by_one(self) -> Iterator[Packet]:
        """A packet for each place it goes to; the last one counts as sent."""
        landings = self.message.landings
        for landing in landings:
            message = replace(self.message, landings=(landing,))
            yield replace(self, message=message, counts_as_sent=landing is landings[-1])


def packets_of(net: Net, plan: Plan) -> list[list[Packet]]:
    """The packets of each message."""
    buffers = {(pe.pe, b.name): b for pe in plan.pes for b in pe.buffers} | {(DRAM, b.name): b for b in plan.dram}
    return [_packets(net, buffers, message) for message in plan.messages]


def _packets(net: Net, buffers: dict[tuple[int, str], Buffer], message: Message) -> list[Packet]:
    landing = message.landings[0]
    source = buffers[message.source_pe, message.source.buffer].box
    target = buffers[landing.pe, landing.view.buffer].box
    size = np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1
    parts = copies(message.source.box, source, target, size)
    return [_packet(message, part, last=part is parts[-1]) for part in parts]


def _packet(message: Message, part: Copy, *, last: bool) -> Packet:
    return Packet(message, part.flits, last, last, part.rows * part.row_bytes)
