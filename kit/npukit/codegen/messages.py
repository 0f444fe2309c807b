"""Messages between PEs as descriptors of the DMA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from npukit.accel.interface import Address
from npukit.board.noc import DESCRIPTOR_BYTES, DESTINATION_BYTES, DRAM
from npukit.codegen.constants import Absolute, Fields, Foreign, Number, Record, Value
from npukit.codegen.parts import Arena, link_to
from npukit.net.net import Net
from npukit.plan.ir.plan import SENT_FLAG, Buffer, Landing, Message, Plan
from npukit.plan.predict.memory import MULTICAST_SIGNAL, control_bytes
from npukit.plan.tensors.dma_copies import Copy, copies

DESCRIPTOR_ALIGN = 16
TAGS = 1 << 16
SIGNAL_SENT = 1 << 16
SIGNAL_THIS_CHIP = 1 << 17
"""Bits in `net_step.what` of a signal, beside the tag. `SIGNAL_SENT`: increment the sender's own flag too.
`SIGNAL_THIS_CHIP`: the PE number counts from the first PE of this chip."""
NO_FLAG = "NOC_NO_FLAG"


def of_this_chip(pe: int) -> str:
    """The C of a PE's number, counted from the first PE of the chip whose DMA reads the descriptor."""
    return f"NOC_THIS_CHIP + {pe}"


def descriptor(symbol: str, fields: Fields, comment: str) -> Record:
    """A descriptor of the DMA."""
    return Record(symbol, "noc_descriptor", (fields,), DESCRIPTOR_ALIGN, DESCRIPTOR_BYTES, comment)


def destinations(symbol: str, places: Iterable[tuple[Value, Value]], comment: str) -> Record:
    """The destinations of a multicast: the PE, and the address there."""
    rows: tuple[Fields, ...] = tuple((("pe", pe), ("address", address)) for pe, address in places)
    return Record(symbol, "noc_destination", rows, 4, DESTINATION_BYTES, comment, listed=True)


def multicast(targets: str, count: int) -> Fields:
    """The fields of a descriptor with `count` destinations, listed under the symbol `targets`."""
    return ("options", "NOC_MULTICAST"), ("destination_pe", Number(Address(targets))), ("destination", count)


@dataclass(frozen=True)
class _Hop:
    """One copy of a message to some of its landings, all with the same flag, or none."""

    copy: Copy
    landings: tuple[tuple[Landing, int], ...]
    """The landings, with the offset of the first byte in the buffer of each."""
    flag: int | None
    sent: bool


class Descriptors:
    """Builder of the descriptors of one PE's messages."""

    def __init__(self, net: Net, plan: Plan, pe: int, arena: Arena) -> None:
        self._net, self._plan, self._pe, self._arena = net, plan, pe, arena
        self._plans, self._chips_alike = plan.by_pe, len(plan.chips) > 1
        self._counts_sent = self._plans[pe].awaits_sent
        self._dram = {buffer.name: buffer for buffer in plan.dram}

    def chain(self, numbers: Sequence[int]) -> list[Record]:
        """The linked descriptors of successive messages, with their lists of destinations."""
        made = [record for number in numbers for record in self._message(number)]
        following = dict(pairwise([record.symbol for record in made if not record.listed]))
        links = [link_to("next", following.get(record.symbol)) for record in made]
        pairs = zip(made, links, strict=True)
        return [replace(record, rows=((*link, *record.rows[0]), *record.rows[1:])) for record, link in pairs]

    def is_signal(self, number: int) -> bool:
        """True if a message carries no data and only increments flags."""
        message = self._plan.messages[number]
        return not message.tensor and message.source_pe == self._pe

    def receivers(self, number: int) -> Record | None:
        """The list of destinations of a signal sent as a multicast (`MULTICAST_SIGNAL`), else None."""
        landings = self._plan.messages[number].landings
        if len(landings) < MULTICAST_SIGNAL:
            return None
        assert len({landing.flag for landing in landings}) == 1, "a signal counts one flag"
        places = [(self._number(each.pe), 0) for each in landings]
        return destinations(f"{_symbol(number, 0)}_to", places, f"receivers of message {number}")

    def signals(self, number: int) -> Iterator[tuple[int, int, int]]:
        """The destinations of a signal, with flag and tag. The last also increments the sender's flag."""
        landings = self._plan.messages[number].landings
        what = number % TAGS | (SIGNAL_THIS_CHIP if self._chips_alike else 0)
        for landing in landings:
            yield landing.pe, landing.flag, what | (SIGNAL_SENT if landing is landings[-1] else 0)

    @staticmethod
    def first(number: int) -> str:
        """The symbol of a message's first descriptor."""
        return _symbol(number, 0)

    def _message(self, number: int) -> Iterator[Record]:
        message = self._plan.messages[number]
        contents = f"{message.tensor} {message.source.box}" if message.tensor else message.source.buffer
        for index, hop in enumerate(self._hops(message)):
            symbol = _symbol(number, index)
            targets = f"{symbol}_to"
            yield descriptor(symbol, self._fields(message, hop, number, targets), f"message {number}: {contents}")
            if len(hop.landings) > 1:
                places = [(self._number(landing.pe), self._at(landing, offset)) for landing, offset in hop.landings]
                yield destinations(targets, places, f"destinations of {symbol}")

    def _hops(self, message: Message) -> Iterator[_Hop]:
        """Copies to all landings at once. The last copy is repeated for each flag. Its last repetition also increments
        the sender's own flag, if the plan waits for it."""
        counts = message.source_pe == self._pe and self._counts_sent
        parts = [self._copies(message, landing) for landing in message.landings]
        for index, same in enumerate(zip(*parts, strict=True)):
            places = [(x, copy.destination_offset) for x, copy in zip(message.landings, same, strict=True)]
            if index < len(parts[0]) - 1:
                yield _Hop(same[0], tuple(places), None, sent=False)
                continue
            flags = sorted({landing.flag for landing in message.landings})
            for flag in flags:
                chosen = tuple(place for place in places if place[0].flag == flag)
                yield _Hop(same[0], chosen, flag, sent=counts and flag == flags[-1])

    def _copies(self, message: Message, landing: Landing) -> tuple[Copy, ...]:
        held = self._dram if landing.pe == DRAM else self._plans[landing.pe].by_name
        target = held[landing.view.buffer]
        item = np.dtype(self._net.tensor(message.tensor).dtype).itemsize if message.tensor else 1
        return copies(message.source.box, self._source(message).box, target.box, item)

    def _source(self, message: Message) -> Buffer:
        buffers = self._dram if message.source_pe == DRAM else self._arena.buffers
        return buffers[message.source.buffer]

    def _fields(self, message: Message, hop: _Hop, number: int, targets: str) -> Fields:
        source, offset, from_dram = self._source(message), hop.copy.source_offset, message.source_pe == DRAM
        begin = Absolute(source.offset + offset) if from_dram else Address(self._arena.place(source), offset)
        return (
            ("kind", "NOC_COPY"),
            ("tag", number % TAGS),
            ("source_pe", self._number(DRAM if from_dram else self._pe)),
            ("source", begin),
            *self._destination(hop, targets),
            ("row_bytes", hop.copy.row_bytes),
            ("rows", hop.copy.rows),
            ("source_stride", hop.copy.source_stride),
            ("destination_stride", hop.copy.destination_stride),
            ("source_flag", SENT_FLAG if hop.sent else NO_FLAG),
            ("destination_flag", NO_FLAG if hop.flag is None else hop.flag),
        )

    def _destination(self, hop: _Hop, targets: str) -> Fields:
        (landing, offset), count = hop.landings[0], len(hop.landings)
        single = ("destination_pe", self._number(landing.pe)), ("destination", self._at(landing, offset))
        return multicast(targets, count) if count > 1 else single

    def _number(self, pe: int) -> Value:
        if pe == DRAM:
            return "NOC_THIS_CHIP + NOC_DRAM" if self._chips_alike else "NOC_DRAM"
        return of_this_chip(pe) if self._chips_alike else pe

    def _at(self, landing: Landing, offset: int) -> Value:
        """The address of byte `offset` in the buffer where a message lands."""
        if landing.pe == DRAM:
            return self._dram[landing.view.buffer].offset + offset
        pe = self._plans[landing.pe]
        buffer = pe.buffer(landing.view.buffer)
        if landing.pe == self._pe:
            return Number(Address(self._arena.place(buffer), offset))
        return Foreign(landing.pe, control_bytes(len(pe.tiles)) + buffer.offset + offset)


def _symbol(number: int, index: int) -> str:
    return f"message_{number}_descriptor_{index}"
