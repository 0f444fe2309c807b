"""Requests and replies over a link that loses and damages things."""

from __future__ import annotations

import secrets
import struct
from time import monotonic

from npukit.errors import DoesNotFit, NpukitError
from npukit.link.fault import DeviceFault
from npukit.link.frames import FrameDecoder, encode_frame
from npukit.link.messages import (
    BREAK,
    FAULT,
    LINKED_PE,
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
from npukit.link.transport import Transport

_ATTEMPTS = 12
_FIRST_PAUSE = 0.5
"""Seconds until a request is repeated; twice as long before each further repetition."""


class NoAnswer(NpukitError):
    """The device did not answer in time."""


class Conversation:
    """One host's requests to a device, one after another.

    A request is repeated until its own reply comes; no answer in time, or a nonsensical one, is an `NpukitError`.
    """

    def __init__(self, transport: Transport, answer_seconds: float) -> None:
        self._transport = transport
        self._answer_seconds = answer_seconds
        self._decoder = FrameDecoder()
        self._session = secrets.randbelow(0xFFFF) + 1
        self._sequence = 0
        self._earlier_fault: DeviceFault | None = None

    def ask(self, request: Request[Answer], seconds: float | None = None, pe: int = LINKED_PE) -> Answer:
        """What the device answers within so many seconds, or the usual number of them, to a request to `pe`."""
        return self.converse(request, seconds, pe)[0]

    def converse(
        self, request: Request[Answer], seconds: float | None = None, pe: int = LINKED_PE
    ) -> tuple[Answer, Reply]:
        """The answer, and the reply that brought it."""
        reply = self._repeat(request, pe, monotonic() + (seconds or self._answer_seconds))
        if reply.status != Status.OK:
            raise _refused(request, reply)
        try:
            return request.parse(reply.payload), reply
        except (Malformed, struct.error) as error:
            raise NpukitError(
                f"the device was asked to {request.does}, and its answer makes no sense: {error}"
            ) from error

    def break_off(self) -> None:
        """End a run in which the device waits for ever. It then answers what it was asked."""
        self._transport.write(BREAK)

    def _repeat(self, request: Request, pe: int, deadline: float) -> Reply:
        self._sequence = (self._sequence + 1) & 0xFFFF
        frame = encode_frame(pack_request(request, self._sequence, self._session, pe))
        for attempt in range(_ATTEMPTS):
            until = min(monotonic() + _FIRST_PAUSE * 2**attempt, deadline)
            self._transport.write(frame)
            reply = self._await(request, until)
            if reply is not None:
                return reply
            if monotonic() >= deadline:
                break
        raise self._silence(request)

    def _await(self, request: Request, until: float) -> Reply | None:
        """The reply to the request, or nothing once `until` has passed or nothing more will come."""
        while (left := until - monotonic()) > 0:
            data = self._transport.read(left)
            if not data:
                return None
            reply = self._reply_in(data, request)
            if reply is not None:
                return reply
        return None

    def _reply_in(self, data: bytes, request: Request) -> Reply | None:
        found = None
        for packet in self._decoder.feed(data):
            reply = unpack_reply(packet)
            if reply is not None and reply.kind == FAULT:
                self._take_fault(reply)
            if reply is not None and reply.answers(request, self._sequence, self._session):
                found = reply
        return found

    def _take_fault(self, reply: Reply) -> None:
        """A fault of this session ends it; one from before may have been cured by a reset, or be why nobody answers."""
        fault = DeviceFault(reply.pe, reply.address, *unpack_fault(reply))
        if reply.session == self._session:
            raise fault
        self._earlier_fault = fault

    def _silence(self, request: Request) -> NpukitError:
        if self._earlier_fault is not None:
            return self._earlier_fault
        damaged = self._decoder.damaged
        what = f"only {damaged} damaged frames came back" if damaged else "nothing came back"
        return NoAnswer(
            f"the device was asked to {request.does} and did not answer: {what}",
            tries=["check cable, port and baud rate", "reset the device", "npukit flash, if it runs other firmware"],
        )


def _refused(request: Request, reply: Reply) -> NpukitError:
    if reply.status == Status.OTHER_PROTOCOL:
        return DoesNotFit(
            f"the device speaks version {reply.address} of the link's protocol, this npukit version {PROTOCOL}",
            tries=["npukit build and flash again with this npukit"],
        )
    return NpukitError(
        f"PE {reply.pe} was asked to {request.does} and refused: {reply.text} "
        f"(status {reply.status}, {reply.address:#010x})"
    )
