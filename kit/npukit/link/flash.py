"""Session with a board's loader: reads the state of the flash, and writes a new image (`docs/protocol.md`)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import ClassVar, Protocol, runtime_checkable

from npukit.boot.provision import Policy, Takes
from npukit.boot.signed_image import SignedImage, Version
from npukit.errors import NpukitError
from npukit.link.conversation import Conversation
from npukit.link.messages import REPLY_HEADER_BYTES, Done, Malformed, Request
from npukit.link.transport import Transport

_ANSWER_SECONDS = 20.0
_WINDOW = 4
"""Requests under way at once. The loader buffers 4096 bytes while it waits for the flash."""
_NO_SLOT = 0xFF
_SLOTS = 2
_WORD = 4
_WRITE_ARGUMENTS = 8
_DIGEST_BYTES = 32


@runtime_checkable
class RestartableTransport(Transport, Protocol):
    """A transport through which the host can restart the board."""

    def restart(self) -> None:
        """Restart the board with a break on the line. The loader then waits for the host."""
        ...


class Verdict(IntEnum):
    """The loader's verdict on the image in a slot."""

    GOOD = 0
    ABSENT = 1
    TRUNCATED = 2
    MALFORMED = 3
    ALTERED = 4
    UNSIGNED = 5
    FORGED = 6
    FOREIGN = 7
    UNASKED = 8
    REVOKED = 9


@dataclass(frozen=True)
class LoaderState:
    """A board's state, reported by the loader. `active`, `trial`: None if no slot is active or on trial."""

    loader: int
    largest_packet: int
    slot_bytes: int
    page_bytes: int
    cause: int
    active: int | None
    trial: int | None
    tried: bool
    takes: Takes
    security_counter: int
    board: str


@dataclass(frozen=True)
class SlotState:
    """An image in a slot. Only the fields of a `GOOD` image are valid."""

    verdict: Verdict
    bytes: int
    version: Version
    digest: bytes
    security_counter: int


class _Identify(Request[LoaderState]):
    kind, does = 0x20, "describe its flash"
    _FIXED: ClassVar[struct.Struct] = struct.Struct("<HHIIIBBBBI32sB")

    def parse(self, payload: bytes) -> LoaderState:
        fields = self._FIXED.unpack_from(payload)
        loader, packet, slot_bytes, page_bytes, cause, active, trial, tried, policy, counter, key, length = fields
        name = payload[self._FIXED.size :]
        if len(name) != length:
            raise Malformed("the board's name is cut short")
        if policy not in list(Policy):
            raise Malformed(f"{policy} is nothing that a board could have been told")
        return LoaderState(
            loader=loader,
            largest_packet=packet,
            slot_bytes=slot_bytes,
            page_bytes=page_bytes,
            cause=cause,
            active=None if active == _NO_SLOT else active,
            trial=None if trial == _NO_SLOT else trial,
            tried=bool(tried),
            takes=Takes(Policy(policy), key if policy == Policy.KEY else None),
            security_counter=counter,
            board=name.decode("utf-8", "replace"),
        )


@dataclass(frozen=True)
class _DescribeSlot(Request[SlotState]):
    kind, does = 0x21, "describe a slot"
    layout = "<I"
    slot: int

    def parse(self, payload: bytes) -> SlotState:
        verdict, size, version, digest, counter = struct.unpack("<II8s32sI", payload)
        if verdict not in list(Verdict):
            raise Malformed(f"{verdict} is no verdict on an image")
        return SlotState(Verdict(verdict), size, Version.unpack(version), digest, counter)


@dataclass(frozen=True)
class _DigestPages(Request[tuple[bytes, ...]]):
    kind, does = 0x22, "digest pages of its flash"
    layout = "<II"
    slot: int
    first: int

    def parse(self, payload: bytes) -> tuple[bytes, ...]:
        if not payload or len(payload) % _DIGEST_BYTES:
            raise Malformed("that is no number of digests")
        return tuple(payload[at : at + _DIGEST_BYTES] for at in range(0, len(payload), _DIGEST_BYTES))


@dataclass(frozen=True)
class _ErasePage(Done):
    kind, does = 0x23, "erase a page of its flash"
    layout = "<II"
    slot: int
    page: int


@dataclass(frozen=True)
class _WriteSlot(Done):
    kind, does = 0x24, "write its flash"
    layout = "<II"
    slot: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class _TrySlot(Done):
    kind, does = 0x25, "put an image on trial"
    layout = "<II"
    slot: int
    may_be_older: bool
    digest: bytes


@dataclass(frozen=True)
class _Provision(Done):
    kind, does = 0x26, "learn whose images it takes"
    record: bytes


class _Abandon(Done):
    kind, does = 0x27, "give up the image on trial"


class _Boot(Done):
    kind, does = 0x28, "start"


class LoaderSession:
    """A session with a board's loader. Restarts the board first; the transport stays open at the end."""

    def __init__(self, transport: RestartableTransport, answer_seconds: float = _ANSWER_SECONDS) -> None:
        transport.restart()
        self._conversation = Conversation(transport, answer_seconds)
        self._conversation.window = _WINDOW
        self.state = self._conversation.ask(_Identify())

    def describe(self, slot: int) -> SlotState:
        return self._conversation.ask(_DescribeSlot(slot))

    def free_slot(self) -> int:
        """The slot for a new image: the inactive one."""
        return next(slot for slot in range(_SLOTS) if slot != self.state.active)

    def pages_that_differ(self, slot: int, image: bytes) -> list[int]:
        """Pages of the slot whose contents differ from the image's."""
        wanted = [hashlib.sha256(page).digest() for page in _pages(image, self.state.page_bytes)]
        found: list[bytes] = []
        while len(found) < len(wanted):
            found += self._conversation.ask(_DigestPages(slot, len(found)))
        return [index for index, digest in enumerate(wanted) if found[index] != digest]

    def write(
        self, slot: int, image: bytes, track: Callable[[list[int], str], Iterable[int]] = lambda pages, _: pages
    ) -> int:
        """Write the image into the slot. Erases and writes only the pages that differ; returns the number of pages."""
        if len(image) > self.state.slot_bytes:
            raise NpukitError(f"the image has {len(image)} bytes, a slot of the board {self.state.slot_bytes}")
        pages, contents = self.pages_that_differ(slot, image), _pages(image, self.state.page_bytes)
        self._conversation.ask_all(_ErasePage(slot, page) for page in pages[:1])
        following = dict(pairwise(pages))
        for page in track(pages, "write the flash"):
            self._write_page(slot, page, contents[page], following.get(page))
        return len(pages)

    def put_on_trial(self, slot: int, image: SignedImage, may_be_older: bool) -> None:
        """Start the image next. The loader refuses broken, unsigned or older images, and another board's."""
        self._conversation.ask(_TrySlot(slot, may_be_older, image.digest))

    def provision(self, takes: Takes) -> None:
        """Set for good whose images the board accepts. A board provisioned otherwise refuses."""
        self._conversation.ask(_Provision(takes.record()))

    def abandon(self) -> None:
        """End the trial: no image is on trial afterwards."""
        self._conversation.ask(_Abandon())

    def boot(self) -> None:
        """Restart the board, which then starts an image."""
        self._conversation.ask(_Boot())

    def _write_page(self, slot: int, page: int, content: bytes, following: int | None) -> None:
        """Write an erased page, and erase the following page meanwhile; the order does not matter."""
        erase = [] if following is None else [_ErasePage(slot, following)]
        room = (self.state.largest_packet - REPLY_HEADER_BYTES - _WRITE_ARGUMENTS) // _WORD * _WORD
        pieces = ((at, content[at : at + room]) for at in range(0, len(content), room))
        writes = [_WriteSlot(slot, page * len(content) + at, part) for at, part in pieces if part.strip(b"\xff")]
        self._conversation.ask_all([*erase, *writes])


def _pages(image: bytes, page_bytes: int) -> list[bytes]:
    """The image as whole pages. The rest of the last page stays erased."""
    return [image[at : at + page_bytes].ljust(page_bytes, b"\xff") for at in range(0, len(image), page_bytes)]
