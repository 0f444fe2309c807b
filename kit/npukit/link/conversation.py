"""Requests and replies over a link with losses and errors."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import Generic

from npukit.errors import DoesNotFit, NpukitError
from npukit.link.fault import DeviceFault
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import (
    BREAK,
    FAULT,
    LINKED_PE,
    LOG,
    PROTOCOL,
    Answer,
    Malformed,
    Reply,
    Request,
    Status,
    pack_request,
    unpack_fault,
    unpack_reply,
)
from npukit.link.transport import Transport, Witness, chance

_ATTEMPTS = 12
_INSISTENT_PAUSE = 0.02
"""Seconds between repetitions to a device that may hear requests only between two frames."""
_MOST_LINES = 1000


@dataclass(frozen=True)
class _UnderWay:
    """A sent request: its place in the exchange, and the encoded frame."""

    place: int
    request: Request
    frame: bytes


@dataclass(frozen=True)
class Begun(Generic[Answer]):
    """A sent request without an answer yet."""

    request: Request[Answer]
    under_way: Mapping[int, _UnderWay]


class NoAnswer(NpukitError):
    """The device did not answer in time."""


class Refused(NpukitError):
    """The device has refused a request."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Conversation:
    """A host's requests to a device. Requests go to `pe` unless they name another PE. Up to `window` requests are under
    way at once. Each is repeated until a reply comes. A late or malformed answer raises `NpukitError`."""

    def __init__(self, transport: Transport, answer_seconds: float, pe: int = LINKED_PE) -> None:
        self._transport = transport
        self._pe = pe
        self._answer_seconds = answer_seconds
        self._decoder = FrameDecoder()
        self.chance = chance(transport)
        self._session = self.chance.randint(1, 0xFFFF)
        self._sequence = 0
        self._earlier_fault: DeviceFault | None = None
        self.window = 1
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        """Unrequested lines of text from the device."""

    def ask(self, request: Request[Answer], seconds: float | None = None, pe: int | None = None) -> Answer:
        """The answer to a request, within `seconds`. Defaults: the conversation's time limit and PE."""
        return self.converse(request, seconds, pe)[0]

    def converse(
        self, request: Request[Answer], seconds: float | None = None, pe: int | None = None
    ) -> tuple[Answer, Reply]:
        """The answer, and the reply packet."""
        ((_, reply),) = self._exchange([request], seconds or self._answer_seconds, pe)
        return _answer_in(request, reply), reply

    def begin(self, request: Request[Answer]) -> Begun[Answer]:
        """Send a request. `end` waits for the answer."""
        under_way: dict[int, _UnderWay] = {}
        self._fill(under_way, enumerate([request]), None)
        return Begun(request, under_way)

    def end(self, begun: Begun[Answer], seconds: float) -> Answer:
        """The answer to a request sent by `begin`."""
        ((sequence, reply),) = self._replies(begun.under_way, seconds, ()).items()
        _check_status(begun.under_way[sequence].request, reply)
        return _answer_in(begun.request, reply)

    def insist(self, request: Request[Answer]) -> Answer:
        """Repeat a request often until the answer comes: the device may be busy, and its UART may hold one byte."""
        pauses = [_INSISTENT_PAUSE] * round(self._answer_seconds / _INSISTENT_PAUSE)
        ((_, reply),) = self._exchange([request], self._answer_seconds, None, pauses)
        return _answer_in(request, reply)

    def listen(self, seconds: float) -> None:
        """Receive unrequested packets for `seconds` at most."""
        self._replies_in(self._transport.read(seconds), {})

    def ask_all(self, requests: Iterable[Request[Answer]], pe: int | None = None) -> list[Answer]:
        """Answers in the order of the requests. Requests may be carried out in any order and more than once."""
        exchanged = self._exchange(requests, self._answer_seconds, pe)
        return [_answer_in(request, reply) for request, reply in exchanged]

    def break_off(self) -> None:
        """End a run in which the device waits for ever. The device then answers the request for the run."""
        self._transport.write(BREAK)

    def _exchange(
        self, requests: Iterable[Request], seconds: float, pe: int | None, pauses: Sequence[float] = ()
    ) -> list[tuple[Request, Reply]]:
        """Each request and its reply. Fails after `seconds` without any reply."""
        waiting, done = enumerate(requests), {}
        under_way: dict[int, _UnderWay] = {}
        self._fill(under_way, waiting, pe)
        while under_way:
            for sequence, reply in self._replies(under_way, seconds, pauses).items():
                sent = under_way.pop(sequence)
                _check_status(sent.request, reply)
                done[sent.place] = sent.request, reply
            self._fill(under_way, waiting, pe)
        return [done[place] for place in range(len(done))]

    def _fill(self, under_way: dict[int, _UnderWay], waiting: Iterator[tuple[int, Request]], pe: int | None) -> None:
        """Send requests while the window has room."""
        to = self._pe if pe is None else pe
        for place, request in islice(waiting, max(self.window - len(under_way), 0)):
            self._sequence = (self._sequence + 1) & 0xFFFF
            frame = encode_frame(pack_request(request, self._sequence, self._session, to))
            under_way[self._sequence] = _UnderWay(place, request, frame)
            self._transport.write(frame)

    def _replies(self, under_way: Mapping[int, _UnderWay], seconds: float, pauses: Sequence[float]) -> dict[int, Reply]:
        """Replies to requests under way, at least one. Requests are repeated until a reply comes.

        A `Witness` loses no bytes, however long the answer takes. Requests to a `Witness` are repeated only after a
        report that no reply will come.
        """
        deadline = monotonic() + seconds
        first = max(sent.request.patience for sent in under_way.values())
        usual = pauses or [first * 2**attempt for attempt in range(_ATTEMPTS)]
        for pause in [seconds] * _ATTEMPTS if isinstance(self._transport, Witness) else usual:
            replies = self._await(under_way, min(monotonic() + pause, deadline))
            if replies:
                return replies
            if monotonic() >= deadline:
                break
            for sent in under_way.values():
                self._transport.write(sent.frame)
        raise self._silence(next(iter(under_way.values())).request)

    def _await(self, under_way: Mapping[int, _UnderWay], until: float) -> dict[int, Reply]:
        """Replies. Empty after `until`, or once the transport has no more bytes."""
        while (left := until - monotonic()) > 0:
            data = self._transport.read(left)
            if not data:
                return {}
            replies = self._replies_in(data, under_way)
            if replies:
                return replies
        return {}

    def _replies_in(self, data: bytes, under_way: Mapping[int, _UnderWay]) -> dict[int, Reply]:
        found = {}
        for packet in self._decoder.feed(data):
            reply = unpack_reply(packet)
            if reply is None:
                continue
            if reply.kind == FAULT:
                fault = DeviceFault(reply.pe, reply.address, *unpack_fault(reply))
                if reply.session == self._session:
                    raise fault
                self._earlier_fault = fault  # a reset may cure it, or it may explain a silence
            if reply.kind == LOG:
                self.lines.append(reply.text)
            sent = under_way.get(reply.sequence)
            if sent is not None and reply.answers(sent.request, reply.sequence, self._session):
                found[reply.sequence] = reply
        return found

    def _silence(self, request: Request) -> NpukitError:
        if self._earlier_fault is not None:
            return self._earlier_fault
        damaged = self._decoder.damaged
        received = f"only {damaged} damaged frames came back" if damaged else "nothing came back"
        message = f"the device was asked to {request.does} and did not answer: {received}"
        if isinstance(self._transport, Witness):
            return NoAnswer(message, facts=self._transport.silence(), tries=["npukit run BUILD ... --gdb PORT"])
        tries = ["check cable, port and baud rate", "reset the device", "npukit flash, if it runs other firmware"]
        return NoAnswer(message, tries=tries)


def _answer_in(request: Request[Answer], reply: Reply) -> Answer:
    try:
        return request.parse(reply.payload)
    except (Malformed, struct.error) as error:
        raise NpukitError(f"the device was asked to {request.does}, and its answer makes no sense: {error}") from error


def _check_status(request: Request, reply: Reply) -> None:
    """Raise an error if the device has refused the request."""
    if reply.status == Status.OTHER_PROTOCOL:
        raise DoesNotFit(
            f"the device speaks version {reply.address} of the link's protocol, this npukit version {PROTOCOL}",
            tries=["npukit build and flash again with this npukit"],
        )
    if reply.status != Status.OK:
        raise Refused(
            f"PE {reply.pe} was asked to {request.does} and refused: {reply.text} "
            f"(status {reply.status}, {reply.address:#010x})",
            reply.status,
        )
