"""Transports that a link runs over: a serial device, a socket, an emulator."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Transport(Protocol):
    """A byte stream to the board's root PE."""

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        ...

    def read(self, timeout: float) -> bytes:
        """Bytes that have arrived: at least one, or none once `timeout` seconds have passed without any.

        An emulator runs until its UART has sent something, and returns nothing at once when the
        firmware sleeps with nothing left to wake it.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class Witness(Protocol):
    """A transport that sees more of the board than its bytes."""

    def silence(self) -> tuple[str, ...]:
        """Why the board does not answer: which PE waits for which, in lines."""
        ...

    def expect(self, frames: int) -> None:
        """Be told that the next answer comes after so many frames."""
        ...
