"""A pseudo-terminal with an emulated board behind it: what a serial device is to pyserial."""

from __future__ import annotations

import os
import select
import termios
import threading
import tty
from collections import deque

from npukit.emulator.flashed import FlashedBoard

_OUTPUT_SPEED = 5
_SLICE_SECONDS = 0.02


class PseudoTerminal:
    """Carries bytes between the terminal `port` and the board until it is closed.

    A byte sent at 1200 baud is a break on the board's line, as it is on a wire.
    """

    def __init__(self, board: FlashedBoard) -> None:
        self._board = board
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._arrived: deque[bytes | None] = deque()
        self._open = True
        self._threads = [threading.Thread(target=work) for work in (self._listen, self._run)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._open = False
        for thread in self._threads:
            thread.join(10)
        os.close(self._master)
        os.close(self._slave)

    def _listen(self) -> None:
        """Take what the host sends at once, with the speed it is sent at. None is a break."""
        while self._open:
            if select.select([self._master], [], [], _SLICE_SECONDS)[0]:
                speed = termios.tcgetattr(self._master)[_OUTPUT_SPEED]
                data = os.read(self._master, 1 << 12)
                self._arrived.append(None if speed == termios.B1200 else data)

    def _run(self) -> None:
        while self._open:
            while self._arrived:
                data = self._arrived.popleft()
                if data is None:
                    self._board.restart()
                else:
                    self._board.write(data)
            output = self._board.read(_SLICE_SECONDS)
            if output:
                os.write(self._master, output)
            elif not self._arrived:
                select.select([], [], [], 0.001)
