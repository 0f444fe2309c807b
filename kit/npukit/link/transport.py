"""Interface of the transports under a link: a serial device, a socket, an emulator."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Transport(Protocol):
    """A byte stream to the board's root PE."""

    def write(self, data: bytes) -> None:
        """Send all of `data`."""
        ...

    def read(self, timeout: float) -> bytes:
        """At least one received byte, or none after `timeout` seconds of silence.

        An emulator runs until its UART has sent something. It returns nothing at once when the firmware sleeps and no
        event is left to wake it.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class Witness(Protocol):
    """A transport that also observes the board's state, such as an emulator."""

    def silence(self) -> tuple[str, ...]:
        """Lines that explain why the board does not answer: which PE waits for which other."""
        ...

    def expect(self, frames: int) -> None:
        """Announce that the next answer comes after `frames` frames."""
        ...
