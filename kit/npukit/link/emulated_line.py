"""A line between an emulated board and a port of this machine: a pseudo-terminal, or TCP with RFC 2217.

A program at the port talks to the board. As on a wire, a byte sent at 1200 baud is a break on the board's line.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import sleep
from typing import Protocol

import serial
from serial import rfc2217

from npukit.errors import NpukitError
from npukit.link.flash import RestartableTransport
from npukit.link.transport import Transport
from npukit.link.transports import BREAK_BAUD

_OUTPUT_SPEED = 5
_AT_ONCE = 1 << 12
_SLICE_SECONDS = 0.02
"""Seconds to read from each side in turn."""
_IDLE_SECONDS = 0.001

BREAK = None


class Port(Protocol):
    """The board's side of a line. `name`: the host opens the other side by this name."""

    name: str

    def receive(self, seconds: float) -> Iterator[bytes | None]:
        """Bytes from the host, or `BREAK`. Waits for `seconds` at most."""
        ...

    def send(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def open_port(tcp: int | None = None) -> Port:
    """A new pseudo-terminal, or a TCP port. `tcp`: number of the port, 0 for any free port."""
    if tcp is not None:
        return NetworkPort(tcp)
    if not hasattr(os, "openpty"):
        raise NpukitError("this system has no pseudo-terminals", tries=["--port NUMBER, for TCP"])
    return PseudoTerminal()


class PseudoTerminal:
    """A pseudo-terminal: to the host, a serial device of this machine."""

    def __init__(self) -> None:
        import tty

        self._board, self._host = os.openpty()
        tty.setraw(self._host)
        self.name = os.ttyname(self._host)

    def receive(self, seconds: float) -> Iterator[bytes | None]:
        import termios

        if select.select([self._board], [], [], seconds)[0]:
            speed = termios.tcgetattr(self._board)[_OUTPUT_SPEED]
            data = os.read(self._board, _AT_ONCE)
            yield BREAK if speed == termios.B1200 else data

    def send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._board, data) :]

    def close(self) -> None:
        os.close(self._board)
        os.close(self._host)


class NetworkPort:
    """A TCP port for this machine alone, `rfc2217://127.0.0.1:NUMBER`, and one host at a time."""

    def __init__(self, number: int) -> None:
        try:
            self._server = socket.create_server(("127.0.0.1", number))
        except (OSError, OverflowError) as error:
            raise NpukitError(f"TCP port {number} cannot be opened: {error}", tries=["another --port"]) from error
        self.name = f"rfc2217://127.0.0.1:{self._server.getsockname()[1]}"
        self._host: _Host | None = None

    def receive(self, seconds: float) -> Iterator[bytes | None]:
        if not select.select([self._host.socket if self._host else self._server], [], [], seconds)[0]:
            return
        if self._host is None:
            self._host = _Host(self._server.accept()[0])
        elif self._host.is_there():
            yield from self._host.receive()
        else:
            self._host = None

    def send(self, data: bytes) -> None:
        if host := self._host:
            host.send(data)

    def close(self) -> None:
        if self._host:
            self._host.socket.close()
        self._server.close()


class _Host:
    """A program at the other end of a TCP line, and the negotiated serial settings."""

    def __init__(self, line: socket.socket) -> None:
        self.socket = line
        self._settings = serial.serial_for_url("loop://")
        self._telnet = rfc2217.PortManager(self._settings, self)  # pyright: ignore[reportArgumentType]

    def is_there(self) -> bool:
        """False once the other end has closed the connection."""
        with suppress(OSError):
            if self.socket.recv(1, socket.MSG_PEEK):
                return True
        self.socket.close()
        return False

    def receive(self) -> Iterator[bytes | None]:
        for byte in self._telnet.filter(self.socket.recv(_AT_ONCE)):
            yield BREAK if self._settings.baudrate == BREAK_BAUD else byte

    def send(self, data: bytes) -> None:
        self.write(b"".join(self._telnet.escape(data)))

    def write(self, data: bytes) -> None:
        """Send raw bytes, the telnet negotiation included. After the host has gone, the bytes are lost."""
        with suppress(OSError):
            self.socket.sendall(data)


class EmulatedLine:
    """Carries bytes both ways until `close` or a failure of the board."""

    def __init__(self, board: Transport, port: Port) -> None:
        self._board = board
        self._port = port
        self.port = port.name
        """The port's name for the host."""
        self._arrived: deque[bytes | None] = deque()
        self._is_open = True
        self._failure: Exception | None = None
        self._threads = [threading.Thread(target=self._repeat, args=[work]) for work in (self._listen, self._run)]
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until the line closes. Raises the board's error after a failure."""
        while self._is_open:
            sleep(_SLICE_SECONDS)
        if self._failure:
            raise self._failure

    def close(self) -> None:
        self._is_open = False
        for thread in self._threads:
            thread.join()
        self._port.close()

    def _repeat(self, work: Callable[[], None]) -> None:
        try:
            while self._is_open:
                work()
        except Exception as error:
            self._failure, self._is_open = error, False

    def _listen(self) -> None:
        """Receive from the host at once: a pseudo-terminal tells only the speed of the last byte."""
        self._arrived.extend(self._port.receive(_SLICE_SECONDS))

    def _run(self) -> None:
        while self._arrived:
            data = self._arrived.popleft()
            if data is not None:
                self._board.write(data)
            elif isinstance(self._board, RestartableTransport):
                self._board.restart()
        output = self._board.read(_SLICE_SECONDS)
        if output:
            self._port.send(output)
        elif not self._arrived:
            sleep(_IDLE_SECONDS)
