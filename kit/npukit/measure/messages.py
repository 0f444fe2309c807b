"""Messages of a frame: the cores' cycles for them, from a timeline, and a comparison with the plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from npukit.board.board import Board
from npukit.board.noc import DRAM
from npukit.emulator.messages import place
from npukit.emulator.trace_records import RecordKind, TraceRecords
from npukit.errors import Differs
from npukit.net.net import Net
from npukit.plan.ir.plan import Buffer, Plan
from npukit.plan.multi_chip import twin
from npukit.plan.predict.timeline import CORE, SEND, WAIT, Timeline, TimeSlice
from npukit.plan.tensors.dma_copies import copies


def waits(timeline: Timeline) -> dict[str, int]:
    """Cycles of waits for messages before each layer in a frame, on the PE that waits longest."""
    return _most(timeline, WAIT)


def sends(timeline: Timeline) -> dict[str, int]:
    """Cycles of starting messages after each layer in a frame, on the PE that takes longest."""
    return _most(timeline, SEND)


def _most(timeline: Timeline, function: str) -> dict[str, int]:
    spent: Counter[tuple[str, int]] = Counter()
    found: dict[int, list[TimeSlice]] = defaultdict(list)
    for piece in sorted(timeline.slices, key=lambda piece: piece.start):
        found[piece.pe].append(piece)
    for pe, own in found.items():
        for layer, cycles in _around(own, function):
            spent[layer, pe] += cycles
    most: Counter[str] = Counter()
    for (layer, _), cycles in spent.items():
        most[layer] = max(most[layer], cycles)
    return {layer: cycles // (len(timeline.frames) * timeline.together) for layer, cycles in most.items()}


def _around(pieces: Sequence[TimeSlice], function: str) -> Iterator[tuple[str, int]]:
    """The layers, with the cycles in `function`: waits belong to the next layer, sends to the last."""
    waited, before = 0, ""
    for piece in pieces:
        if piece.layer:
            before = piece.layer
            yield piece.layer, waited
            waited = 0
        elif piece.name == function == WAIT:
            waited += piece.cycles
        elif piece.name == function and before and piece.track == CORE:
            yield before, piece.cycles


# ---- what moves ----


def check_messages(board: Board, net: Net, plan: Plan, seen: TraceRecords) -> None:
    """Raise an error if a part of a tensor did not move as planned. Other transfers by the firmware are allowed."""
    came = seen.of(RecordKind.TRANSFER)
    moved = Counter(zip(came["a"].tolist(), came["b"].tolist(), came["c"].tolist(), strict=True))
    lacking = Counter(_planned(board, net, plan)) - moved
    if lacking:
        (source, target, size), _ = next(iter(lacking.items()))
        others = sorted(size for one, other, size in moved if (one, other) == (source, target))
        raise Differs(
            f"no message of {size} bytes moves from {place(source)} to {place(target)}, as the plan says",
            facts=[f"those that do have {', '.join(map(str, others)) or 'none at all'}"],
            tries=["npukit trace BUILD -o trace.json, which has all messages of a frame"],
        )


def _planned(board: Board, net: Net, plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Source, destination and bytes of each copy of a part of a tensor, on all chips."""
    dram = {buffer.name: buffer for buffer in plan.dram}

    def buffer(pe: int, name: str) -> Buffer:
        return dram[name] if pe == DRAM else plan.by_pe[pe].buffer(name)

    def on(pe: int, chip: int) -> int:
        return DRAM + chip if pe == DRAM else twin(board, pe, plan.home, chip)

    for message in (each for each in plan.messages if each.tensor):
        source, item = buffer(message.source_pe, message.source.buffer), np.dtype(net.tensor(message.tensor).dtype)
        for landing in message.landings:
            target = buffer(landing.pe, landing.view.buffer)
            for copy in copies(message.source.box, source.box, target.box, item.itemsize):
                for chip in plan.chips:
                    yield on(message.source_pe, chip), on(landing.pe, chip), copy.rows * copy.row_bytes
