"""Cycles for which messages take each PE's SRAM port: known from the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from npukit.board.noc import DRAM
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.ir.plan import Message, Plan
from npukit.plan.tensors.dma_copies import copies


def port_cycles(net: Net, plan: Plan) -> Mapping[int, int]:
    """The cycles of a frame in which each PE's port feeds or takes messages, 16 bytes in each."""
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
    """The flits of one landing: all of a message's have the same."""
    source, landing = boxes[message.source_pe, message.source.buffer], message.landings[0]
    item = np.dtype(net.tensor(message.tensor).dtype).itemsize if message.tensor else 1
    target = boxes[landing.pe, landing.view.buffer]
    return sum(copy.flits for copy in copies(message.source.box, source, target, item))
