"""Interface of the transports under a link: a serial device, a socket, an emulator."""

from __future__ import annotations

from random import Random, SystemRandom
from typing import Protocol, runtime_checkable


class Transport(Protocol):
    """A byte stream to the board's root PE."""

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        ...

    def read(self, timeout: float) -> bytes:
        """Received bytes: at least one, or none after `timeout` seconds of silence. An emulator runs until the UART has
        sent a byte. With the firmware asleep and no event left to wake the core, it returns nothing at once."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Witness(Protocol):
    """A transport with access to the board's state, for example an emulator."""

    def silence(self) -> tuple[str, ...]:
        """Explain why the board does not answer: for each waiting PE, a line with the PE it waits for."""
        ...

    def expect(self, frames: int) -> None:
        """Announce `frames` frames before the next answer."""
        ...

    def conversation(self) -> int:
        """The number of a new conversation since power-on."""
        ...


def chance(transport: Transport) -> Random:
    """Random numbers for a conversation. On a `Witness` they are equal after each power-on: a byte's value changes the
    cycles to decode a frame, and measured cycles must repeat."""
    return Random(transport.conversation()) if isinstance(transport, Witness) else SystemRandom()
