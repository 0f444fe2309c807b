"""Messages between host and device: requests and their replies (`docs/protocol.md`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import ClassVar, Generic, TypeVar

PROTOCOL = 1
LINKED_PE = 0xFFFF
"""The PE that has the link, whatever the PE's number."""
DRAM_PE = 0x8000
"""Pseudo PE number that addresses the DRAM of the first chip."""
FAULT = 0xFF
"""Kind of an unrequested packet from a PE that has stopped on a fault."""
LOG = 0xFE
"""Kind of an unrequested packet with a line of text."""
BREAK = bytes(8)
"""Ends a run in which the device waits for ever. No effect at any other time."""

_REPLY = 0x80
_HEADER = struct.Struct("<BBHHH")
_REPLY_HEADER = struct.Struct("<BBHHHII")
REPLY_HEADER_BYTES = _REPLY_HEADER.size

Answer = TypeVar("Answer")


class Malformed(ValueError):
    """A packet with a correct checksum has invalid contents."""


class Status(IntEnum):
    """Status of a reply or a fault (`docs/protocol.md`, section 3)."""

    OK = 0
    OTHER_PROTOCOL = 1
    NO_SESSION = 2
    OTHER_PE = 3
    UNKNOWN_REQUEST = 4
    BAD_ARGUMENTS = 5
    NO_SUCH_TENSOR = 6
    OUT_OF_RANGE = 7
    NOT_READABLE = 8
    NOT_WRITABLE = 9
    NO_OUTPUT = 10
    NOT_OBSERVED = 11
    FAULT = 12
    NOT_RUNNING = 13
    OUT_OF_STEP = 14
    RUNNING = 15
    NO_SUCH_RUN = 16
    NOT_TRACED = 17


class Table(IntEnum):
    """Tables of tensors that a device can describe."""

    INPUTS = 0
    OUTPUTS = 1
    LAYERS = 2


@dataclass(frozen=True)
class TensorInfo:
    """Name and size of a tensor, as reported by the device."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Greeting:
    """A device's description of itself in the handshake."""

    largest_packet: int
    window: int
    inputs: int
    outputs: int
    layers: int
    pes: int
    build_id: bytes
    board: str
    model: str


MOST_COUNTED = 1 << 60
"""Upper bound on plausible cycle counts: more than a core at 300 MHz counts in a century."""


@dataclass(frozen=True)
class Counters:
    """Counters of a core; 0 where the board cannot count. Implausible counts raise `Malformed`."""

    cycles: int
    instructions: int
    asleep: int

    def __post_init__(self) -> None:
        if not 0 <= self.asleep <= self.cycles < MOST_COUNTED or not 0 <= self.instructions < MOST_COUNTED:
            counts = f"{self.cycles:,} cycles, {self.asleep:,} of them asleep, and {self.instructions:,} instructions"
            raise Malformed(f"no core counts {counts}")

    def since(self, before: Counters) -> Counters:
        """The counts between an earlier reading and this one."""
        return Counters(
            self.cycles - before.cycles, self.instructions - before.instructions, self.asleep - before.asleep
        )


@dataclass(frozen=True)
class RunResult(Counters):
    """A run's status (0, or the network's error code), and counts of the frames alone, without the link."""

    status: int


@dataclass(frozen=True)
class LayerRecord(Counters):
    """One layer of an observed run. A counter of 0xFFFFFFFF is saturated."""

    digest: int


@dataclass(frozen=True)
class PeState(Counters):
    """State of a PE of the network. `layers`: layers that the PE computes. `frames`: frames since reset. The counters
    and `status` are those at the end of the last frame. `fault_pc` and `fault_status`: instruction and cause, if the PE
    has stopped on a fault."""

    pe: int
    running: bool
    layers: int
    frames: int
    status: int
    fault_status: int
    fault_pc: int
    fault_address: int


@dataclass(frozen=True)
class Request(Generic[Answer]):
    """Base of all requests. Repeating a request does no harm."""

    kind: ClassVar[int]
    does: ClassVar[str]
    patience: ClassVar[float] = 0.5
    """Seconds before the first repetition."""

    layout: ClassVar[str] = ""
    """`struct` layout of the fields. A last field of bytes comes after the layout."""

    def arguments(self) -> bytes:
        values = [getattr(self, field.name) for field in fields(self)]
        behind = values.pop() if values and isinstance(values[-1], bytes) else b""
        return struct.pack(self.layout, *values) + behind

    def parse(self, payload: bytes) -> Answer:
        """The answer in the reply's payload. An invalid payload raises `Malformed` or `struct.error`."""
        raise NotImplementedError


class Done(Request[None]):
    """A request whose reply has no payload."""

    def parse(self, payload: bytes) -> None:
        if payload:
            raise Malformed("there is something where nothing should be")


class _Read(Request[bytes]):
    """A request for `size` bytes."""

    size: int

    def parse(self, payload: bytes) -> bytes:
        if len(payload) != self.size:
            raise Malformed(f"{len(payload)} bytes instead of {self.size}")
        return payload


class Hello(Request[Greeting]):
    kind, does = 1, "shake hands"

    def parse(self, payload: bytes) -> Greeting:
        fixed = struct.Struct("<HHHHHH16s")
        board, end = _name(payload, fixed.size)
        model, end = _name(payload, end)
        if end != len(payload):
            raise Malformed("something follows the model's name")
        return Greeting(*fixed.unpack_from(payload), board=board, model=model)


@dataclass(frozen=True)
class Describe(Request[tuple[TensorInfo, ...]]):
    """Names and sizes of a table's tensors from index `first` on. A reply holds as many as fit a packet."""

    kind, does = 2, "describe its tensors"
    layout = "<HH"
    table: Table
    first: int

    def parse(self, payload: bytes) -> tuple[TensorInfo, ...]:
        tensors, at = [], 0
        while at < len(payload):
            (size,) = struct.unpack_from("<I", payload, at)
            name, at = _name(payload, at + 4)
            tensors.append(TensorInfo(name, size))
        return _some(tensors)


@dataclass(frozen=True)
class WriteInput(Done):
    kind, does = 3, "write an input"
    layout = "<HxxI"
    index: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class ReadOutput(_Read):
    kind, does = 4, "read an output"
    layout = "<HHI"
    index: int
    size: int
    offset: int


@dataclass(frozen=True)
class Run(Request[RunResult]):
    """Run frames in a row. A device whose last run has the same `number` repeats the answer and runs nothing."""

    kind, does = 5, "run"
    layout = "<IHH"
    patience = 2.0  # a repeated request costs a waiting PE cycles, which disturbs the measurement
    number: int
    observe: bool
    frames: int

    def parse(self, payload: bytes) -> RunResult:
        number, status, *counts = struct.unpack("<IiQQQ", payload)
        if number != self.number:
            raise Malformed(f"the answer is to run {number} instead of {self.number}")
        return RunResult(*counts, status=status)


@dataclass(frozen=True)
class ReadLayers(Request[tuple[LayerRecord, ...]]):
    """A PE's records of the last observed run, from layer `first` on. A reply holds as many as fit a packet."""

    kind, does = 6, "read the layers of a run"
    layout = "<Hxx"
    first: int

    def parse(self, payload: bytes) -> tuple[LayerRecord, ...]:
        records = struct.iter_unpack("<IIII", payload)
        return _some([LayerRecord(*counts, digest=digest) for digest, *counts in records])


@dataclass(frozen=True)
class ReadMemory(_Read):
    kind, does = 7, "read memory"
    layout = "<II"
    address: int
    size: int


@dataclass(frozen=True)
class ReadDigest(Request[int]):
    kind, does = 16, "digest memory"
    layout = "<II"
    address: int
    size: int

    def parse(self, payload: bytes) -> int:
        (digest,) = struct.unpack("<Q", payload)
        return digest


@dataclass(frozen=True)
class WriteMemory(Done):
    kind, does = 8, "write memory"
    layout = "<I"
    address: int
    data: bytes


class ReadCounters(Request[Counters]):
    kind, does = 9, "read its counters"

    def parse(self, payload: bytes) -> Counters:
        return Counters(*struct.unpack("<QQQ", payload))


@dataclass(frozen=True)
class ReadPes(Request[tuple[PeState, ...]]):
    """States of the network's PEs from index `first` on. A reply holds as many as fit a packet."""

    kind, does = 10, "tell how its PEs are doing"
    layout = "<Hxx"
    first: int

    def parse(self, payload: bytes) -> tuple[PeState, ...]:
        records = struct.iter_unpack("<I?xxxIIQQQiIII", payload)
        return _some([PeState(*each[4:7], *each[:4], *each[7:]) for each in records])


class Reset(Done):
    """Restarts the board and ends the session: a repeated request finds no session."""

    kind, does = 14, "reset the board"


class ResetStates(Done):
    """Resets the states that the network keeps between frames, with effect from the next frame."""

    kind, does = 17, "reset the states"


@dataclass(frozen=True)
class StopBehind(Done):
    """Ends a PE's next observed frame after `pieces` pieces of a layer. The PE's memory stays as the layer left it."""

    kind, does = 18, "stop behind a layer"
    layout = "<HH"
    layer: int
    pieces: int


@dataclass(frozen=True)
class Event:
    """A step of a PE's frame began at `cycle` since reset, or (`FRAME_END`) the frame ended."""

    cycle: int
    step: int


FRAME_END = 0xFFFF


@dataclass(frozen=True)
class PeEvents:
    """Events of a PE from number `first` on. `written`: number of events since reset, with overwritten ones."""

    written: int
    first: int
    events: tuple[Event, ...]


@dataclass(frozen=True)
class ReadEvents(Request[PeEvents]):
    """Reads a PE's events from number `first` on, except overwritten ones. A reply holds as many as fit a packet."""

    kind, does = 15, "read its events"
    layout = "<I"
    first: int

    def parse(self, payload: bytes) -> PeEvents:
        written, first = struct.unpack_from("<II", payload)
        found = tuple(Event(high << 32 | low, step) for low, high, step in struct.iter_unpack("<IHH", payload[8:]))
        if not min(self.first, written) <= first <= first + len(found) <= written:
            raise Malformed(f"events {first} to {first + len(found)} of {written}, when asked for {self.first} and on")
        return PeEvents(written, first, found)


@dataclass(frozen=True)
class Reply:
    """A packet from the device: header fields and payload. The payload of a failed request is a text."""

    protocol: int
    kind: int
    sequence: int
    pe: int
    session: int
    status: int
    address: int
    payload: bytes

    @property
    def text(self) -> str:
        """The payload as text: why a request failed, or a log line."""
        return self.payload.decode("utf-8", "replace")

    def answers(self, request: Request, sequence: int, session: int) -> bool:
        return (self.kind, self.sequence, self.session) == (request.kind | _REPLY, sequence, session)


def pack_request(request: Request, sequence: int, session: int, pe: int = LINKED_PE) -> bytes:
    return _HEADER.pack(PROTOCOL, request.kind, sequence, pe, session) + request.arguments()


def unpack_reply(packet: bytes) -> Reply | None:
    """The reply in the packet. None if no device sent the packet: perhaps an echo of the host's own."""
    if len(packet) < REPLY_HEADER_BYTES or not packet[1] & _REPLY:
        return None
    return Reply(*_REPLY_HEADER.unpack_from(packet), payload=packet[REPLY_HEADER_BYTES:])


def unpack_fault(reply: Reply) -> tuple[int, int]:
    """Fault status and data address of a FAULT packet; zeros if it carries none."""
    return struct.unpack_from("<II", reply.payload.ljust(8, b"\0"))


def _name(payload: bytes, at: int) -> tuple[str, int]:
    """The name whose length byte is at offset `at`, and the offset after the name."""
    end = at + 1 + payload[at] if at < len(payload) else len(payload) + 1
    if end > len(payload):
        raise Malformed("a name is cut short")
    return payload[at + 1 : end].decode("utf-8", "replace"), end


Item = TypeVar("Item")


def _some(items: list[Item]) -> tuple[Item, ...]:
    if not items:
        raise Malformed("it is empty")
    return tuple(items)
