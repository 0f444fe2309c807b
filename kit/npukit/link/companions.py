"""Sessions with several networks that run at the same time on a board, over the same link."""

from __future__ import annotations

from collections.abc import Sequence

from npukit.link.messages import RunResult
from npukit.link.session import Session
from npukit.link.transport import Transport, Witness


class CompanionSession(Session):
    """A session whose network runs beside others. `coresident`: the other sessions, and the frames of each per run."""

    coresident: tuple[tuple[CompanionSession, int], ...] = ()

    def run(self, observe: bool = False, frames: int = 1, seconds: float | None = None) -> RunResult:
        """Run this network and the coresident networks."""
        own = (self, observe, frames)
        others = [(other, False, count) for other, count in self.coresident]
        return run_together([own, *others], seconds)[0]


def run_together(
    wanted: Sequence[tuple[CompanionSession, bool, int]], seconds: float | None = None
) -> tuple[RunResult, ...]:
    """Run several networks at the same time. `wanted`: for each run the session, whether to observe, and the frames.
    The PE with the link begins last: during its run no message reaches another network."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index][0].linked)
    begun = {}
    for index in order:
        session, observe, frames = wanted[index]
        begun[index] = session.begin_run(observe, frames)
    ended = {index: wanted[index][0].end_run(begun[index], seconds) for index in reversed(order)}
    return tuple(ended[index] for index in range(len(wanted)))


class SharedLink:
    """A transport for several sessions. Each receives all bytes, and picks the replies to its own requests."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lines: list[_Line] = []

    def line(self) -> Transport:
        """A transport for another session. Closing it leaves the shared transport open."""
        line = _SeeingLine(self, self._transport) if isinstance(self._transport, Witness) else _Line(self)
        self._lines.append(line)
        return line

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def receive(self, timeout: float) -> None:
        """Read once, and hand the bytes to all lines."""
        data = self._transport.read(timeout)
        for line in self._lines:
            line.arrived += data


class _Line:
    """A session's end of a shared link."""

    def __init__(self, link: SharedLink) -> None:
        self._link = link
        self.arrived = b""

    def write(self, data: bytes) -> None:
        self._link.write(data)

    def read(self, timeout: float) -> bytes:
        if not self.arrived:
            self._link.receive(timeout)
        data, self.arrived = self.arrived, b""
        return data

    def close(self) -> None:
        self.arrived = b""


class _SeeingLine(_Line):
    """A line whose transport also observes the board's state."""

    def __init__(self, link: SharedLink, witness: Witness) -> None:
        super().__init__(link)
        self._witness = witness

    def silence(self) -> tuple[str, ...]:
        return self._witness.silence()

    def expect(self, frames: int) -> None:
        self._witness.expect(frames)

    def conversation(self) -> int:
        return self._witness.conversation()
