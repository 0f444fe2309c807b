"""Messages between host and device: requests, and the answers each of them gets (`docs/protocol.md`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Generic, TypeVar

PROTOCOL = 1
LINKED_PE = 0xFFFF
"""The PE at the other end of the link, whichever it is."""
DRAM_PE = 0x8000
"""Stands for a PE, and means the DRAM of the first chip."""
FAULT = 0xFF
"""The kind of what a PE says unasked when it has stopped."""
LOG = 0xFE
"""The kind of a line of text that a PE says unasked."""
BREAK = bytes(8)
"""Breaks off a run in which the device waits for ever. At any other time it means nothing."""

_REPLY = 0x80
_HEADER = struct.Struct("<BBHHH")
_REPLY_HEADER = struct.Struct("<BBHHHII")
REPLY_HEADER_BYTES = _REPLY_HEADER.size

Answer = TypeVar("Answer")


class Malformed(ValueError):
    """A packet that arrived whole does not say what it should."""


class Status(IntEnum):
    """The status with which a request ended."""

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
    """The tables of tensors a device can describe."""

    INPUTS = 0
    OUTPUTS = 1
    LAYERS = 2


@dataclass(frozen=True)
class TensorInfo:
    """A tensor as the device names it, and its size."""

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
"""More cycles than a core at 300 MHz takes in a century."""


@dataclass(frozen=True)
class Counters:
    """The core's counters; 0 where the board cannot count. `Malformed` if no core can have counted so."""

    cycles: int
    instructions: int
    asleep: int

    def __post_init__(self) -> None:
        if not 0 <= self.asleep <= self.cycles < MOST_COUNTED or not 0 <= self.instructions < MOST_COUNTED:
            told = f"{self.cycles:,} cycles, {self.asleep:,} of them asleep, and {self.instructions:,} instructions"
            raise Malformed(f"no core counts {told}")

    def since(self, before: Counters) -> Counters:
        """The counts of the time between two readings."""
        return Counters(
            self.cycles - before.cycles, self.instructions - before.instructions, self.asleep - before.asleep
        )


@dataclass(frozen=True)
class RunResult(Counters):
    """A run's status (0, or the network's error code) and what its frames alone took: the link is not in it."""

    status: int


@dataclass(frozen=True)
class LayerRecord(Counters):
    """One layer of an observed run; a counter of 0xFFFFFFFF means that much or more."""

    digest: int


@dataclass(frozen=True)
class PeState(Counters):
    """The state of a PE of the network: whether it runs, how many layers it computes, frames since reset, and the
    counters and the status at the last one's end. A PE that has stopped says at which instruction and why.
    """

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
    """Base of all requests. Every one may be repeated without harm."""

    kind: ClassVar[int]
    does: ClassVar[str]
    patience: ClassVar[float] = 0.5
    """Seconds before it is repeated for the first time."""

    layout: ClassVar[str] = ""
    """The layout of the arguments, of which `told` names the fields; the last one, if bytes, comes behind it."""
    told: ClassVar[tuple[str, ...]] = ()

    def arguments(self) -> bytes:
        values = [getattr(self, name) for name in self.told]
        behind = values.pop() if values and isinstance(values[-1], bytes) else b""
        return struct.pack(self.layout, *values) + behind

    def parse(self, payload: bytes) -> Answer:
        """The answer in the reply's payload; `Malformed` or `struct.error` if there is none."""
        raise NotImplementedError


class Done(Request[None]):
    """A request whose answer is that it is done."""

    def parse(self, payload: bytes) -> None:
        if payload:
            raise Malformed("there is something where nothing should be")


@dataclass(frozen=True)
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
    """Names and sizes of a table's tensors from `first` on: as many as fit a packet."""

    kind, does = 2, "describe its tensors"
    layout, told = "<HH", ("table", "first")
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
    layout, told = "<HxxI", ("index", "offset", "data")
    index: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class ReadOutput(_Read):
    kind, does = 4, "read an output"
    layout, told = "<HHI", ("index", "size", "offset")
    index: int
    offset: int


@dataclass(frozen=True)
class Run(Request[RunResult]):
    """Frames, one after another. A device that has just run this `number` answers again without running again."""

    kind, does = 5, "run"
    layout, told = "<IHH", ("number", "observe", "frames")
    patience = 2.0  # what arrives during a run takes the time of a PE that waits, and so disturbs what is measured
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
    """A PE's records of the last observed run from its layer `first` on: as many as fit a packet."""

    kind, does = 6, "read the layers of a run"
    layout, told = "<Hxx", ("first",)
    first: int

    def parse(self, payload: bytes) -> tuple[LayerRecord, ...]:
        records = struct.iter_unpack("<IIII", payload)
        return _some([LayerRecord(*counts, digest=digest) for digest, *counts in records])


@dataclass(frozen=True)
class ReadMemory(_Read):
    kind, does = 7, "read memory"
    layout, told = "<II", ("address", "size")
    address: int


@dataclass(frozen=True)
class ReadDigest(Request[int]):
    kind, does = 16, "digest memory"
    layout, told = "<II", ("address", "size")
    address: int
    size: int

    def parse(self, payload: bytes) -> int:
        (digest,) = struct.unpack("<Q", payload)
        return digest


@dataclass(frozen=True)
class WriteMemory(Done):
    kind, does = 8, "write memory"
    layout, told = "<I", ("address", "data")
    address: int
    data: bytes


class ReadCounters(Request[Counters]):
    kind, does = 9, "read its counters"

    def parse(self, payload: bytes) -> Counters:
        return Counters(*struct.unpack("<QQQ", payload))


@dataclass(frozen=True)
class ReadPes(Request[tuple[PeState, ...]]):
    """The PEs of the network from the `first` on: as many as fit a packet."""

    kind, does = 10, "tell how its PEs are doing"
    layout, told = "<Hxx", ("first",)
    first: int

    def parse(self, payload: bytes) -> tuple[PeState, ...]:
        records = struct.iter_unpack("<I?xxxIIQQQiIII", payload)
        return _some([PeState(*each[4:7], *each[:4], *each[7:]) for each in records])


class Reset(Done):
    """Start the board again. What this request was in is forgotten: a repetition finds no session."""

    kind, does = 14, "reset the board"


class ResetStates(Done):
    """Have what the network keeps from frame to frame begin anew with the next one."""

    kind, does = 17, "reset the states"


@dataclass(frozen=True)
class StopBehind(Done):
    """Have the next observed frame end behind a layer of a PE, after `pieces` of it: its memory is as they left it."""

    kind, does = 18, "stop behind a layer"
    layout, told = "<HH", ("layer", "pieces")
    layer: int
    pieces: int


@dataclass(frozen=True)
class Reply:
    """A device's packet: to which request, how it ended, and what it brings (if it failed: a text)."""

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
        """The device's text about its status."""
        return self.payload.decode("utf-8", "replace")

    def answers(self, request: Request, sequence: int, session: int) -> bool:
        asked = (request.kind | _REPLY, sequence, session)
        return (self.kind, self.sequence, self.session) == asked


def pack_request(request: Request, sequence: int, session: int, pe: int = LINKED_PE) -> bytes:
    return _HEADER.pack(PROTOCOL, request.kind, sequence, pe, session) + request.arguments()


def unpack_reply(packet: bytes) -> Reply | None:
    """The reply in the packet, or nothing if it is no device's: an echo of our own, perhaps."""
    if len(packet) < REPLY_HEADER_BYTES or not packet[1] & _REPLY:
        return None
    return Reply(*_REPLY_HEADER.unpack_from(packet), payload=packet[REPLY_HEADER_BYTES:])


def unpack_fault(reply: Reply) -> tuple[int, int]:
    """The fault status and the data address that a FAULT carries; zeros if it carries none."""
    return struct.unpack_from("<II", reply.payload.ljust(8, b"\0"))


def _name(payload: bytes, at: int) -> tuple[str, int]:
    """The name whose length stands at `at`, and where it ends."""
    end = at + 1 + payload[at] if at < len(payload) else len(payload) + 1
    if end > len(payload):
        raise Malformed("a name is cut short")
    return payload[at + 1 : end].decode("utf-8", "replace"), end


Item = TypeVar("Item")


def _some(items: list[Item]) -> tuple[Item, ...]:
    if not items:
        raise Malformed("it is empty")
    return tuple(items)
