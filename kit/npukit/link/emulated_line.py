"""A line between a port of this machine and an emulated board. A program at the port talks to the board."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import sleep

from npukit.link.flash import RestartableTransport
from npukit.link.ports import Port
from npukit.link.transport import Transport

_SLICE_SECONDS = 0.02
"""Seconds to read from each side in turn."""
_IDLE_SECONDS = 0.001


class EmulatedLine:
    """Carries bytes both ways until `close` or a failure of the board."""

    def __init__(self, board: Transport, port: Port) -> None:
        self._board = board
        self._port = port
        self._arrived: deque[bytes | None] = deque()
        self._is_open = True
        self._failure: Exception | None = None
        self._threads = [threading.Thread(target=self._repeat, args=[work]) for work in (self._listen, self._run)]
        for thread in self._threads:
            thread.start()

    @property
    def port(self) -> str:
        """The port's name for the host."""
        return self._port.name

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
