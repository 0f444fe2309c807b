"""Serial devices, and URLs that pyserial can open, as transports."""

from __future__ import annotations

from contextlib import suppress
from errno import ECONNREFUSED, ENOENT
from time import monotonic, sleep

import serial
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from npukit.board.board import Uart, known_boards
from npukit.errors import NpukitError
from npukit.progress import SILENT, Progress

_POLL_SECONDS = 0.02
_WRITE_SECONDS = 10
OPENING_SECONDS = 20.0
"""Seconds to wait for a missing port. `npukit emulate --port` writes the board's flash before opening the port."""
_OPENING_POLL_SECONDS = 0.1
_BROKEN_SECONDS = 5.0
"""Seconds to wait for a broken line to come back."""
_TROUBLE = (serial.SerialException, OSError, ValueError)
BREAK_BAUD = 1200
"""Baud rate at which the zero bits of a byte last as long as a break, for adapters without breaks."""
_BREAK_SECONDS = 0.25
"""Seconds to wait after the break byte: ample, because the adapter may still hold earlier bytes."""


PLUGGED_IN = "serial"
"""Port name for the only board plugged in."""


def plugged_in() -> list[ListPortInfo]:
    """The serial ports of this machine on USB."""
    return sorted(port for port in list_ports.comports() if port.vid is not None)


def _the_one_plugged_in(uart: Uart) -> str:
    """The only USB port with the USB ids of this UART. Without a match, the only USB port."""
    ports = plugged_in()
    ports = [port for port in ports if _id(port).startswith(uart.usb)] or ports
    if not ports:
        raise NpukitError(
            "no board is plugged in: this machine has no serial port on USB",
            tries=["plug the board in", "the port's name, if it has one: /dev/ttyS0, COM3, socket://host:port"],
        )
    if len(ports) > 1:
        raise NpukitError(
            f"{len(ports)} boards are plugged in",
            facts=list(map(_described, ports)),
            tries=[f"{port.device} instead of serial" for port in ports],
        )
    return ports[0].device


def _id(port: ListPortInfo) -> str:
    return f"{port.vid:04x}:{port.pid:04x}"


def _described(port: ListPortInfo) -> str:
    """The port with its USB description and ids, and the known boards with these ids."""
    boards = ", ".join(board.name for board in known_boards() if _id(port).startswith(board.uart.usb))
    return f"{port.device}: {port.description}, {_id(port)}{f', as has {boards}' if boards else ''}"


def open_serial(port: str, uart: Uart, progress: Progress = SILENT) -> SerialTransport:
    """A serial port by device name or URL: `/dev/ttyACM0`, `COM3`, `socket://host:port`, `rfc2217://host:port`.
    `serial` stands for the USB port of this board's UART. A missing port has `OPENING_SECONDS` to appear."""
    port = _the_one_plugged_in(uart) if port == PLUGGED_IN else port
    try:
        return _once_there(port, uart.baud, progress)
    except _TROUBLE as error:
        raise NpukitError(
            f"port {port} cannot be opened: {error}",
            tries=["python -m serial.tools.list_ports", "close the other program that holds the port"],
        ) from error


def _once_there(port: str, baud: int, progress: Progress) -> SerialTransport:
    """The port, as soon as it opens. An error if an existing port does not open, or a missing port stays missing."""
    until, reported = monotonic() + OPENING_SECONDS, False
    while True:
        try:
            return SerialTransport(port, baud)
        except _TROUBLE as error:
            if not _is_not_there(error) or monotonic() >= until:
                raise
        if not reported:
            progress.stage(f"wait for {port} to open")
            reported = True
        sleep(_OPENING_POLL_SECONDS)


def _is_not_there(error: BaseException) -> bool:
    """True if nothing has this name or address. Searches causes too, because pyserial's error hides the system's."""
    causes = (error, error.__context__, error.__cause__)
    return any(isinstance(each, OSError) and each.errno in (ECONNREFUSED, ENOENT) for each in causes)


class SerialTransport:
    """An open serial port, reopened if back within `_BROKEN_SECONDS`; bytes meanwhile are lost."""

    def __init__(self, port: str, baud: int) -> None:
        self._port = port
        self._baud = baud
        self._serial = self._opened()

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except serial.SerialTimeoutException as error:
            raise self._lost(error) from error
        except _TROUBLE as error:
            self._reopen(error)

    def read(self, timeout: float) -> bytes:
        until = monotonic() + timeout
        try:
            data = self._serial.read(1)
            while not data and monotonic() < until:
                data = self._serial.read(1)
            return data + self._serial.read(self._serial.in_waiting) if data else b""
        except _TROUBLE as error:
            self._reopen(error)
            return b""

    def restart(self) -> None:
        """Send a break, which restarts a board with a loader."""
        baud = self._serial.baudrate
        try:
            self._serial.baudrate = BREAK_BAUD
            self._serial.write(b"\0")
            self._serial.flush()
            sleep(_BREAK_SECONDS)
            self._serial.baudrate = baud
            self._serial.reset_input_buffer()
        except _TROUBLE as error:
            raise self._lost(error) from error

    def close(self) -> None:
        self._serial.close()

    def _opened(self) -> serial.Serial:
        # Constant read timeout: with some URLs a change renegotiates the line. A stalled local device must not hang the
        # host; some URLs refuse a limit.
        timeout = None if "://" in self._port else _WRITE_SECONDS
        return serial.serial_for_url(self._port, self._baud, timeout=_POLL_SECONDS, write_timeout=timeout)

    def _reopen(self, broken: Exception) -> None:
        with suppress(*_TROUBLE):
            self._serial.close()
        until = monotonic() + _BROKEN_SECONDS
        while monotonic() < until:
            with suppress(*_TROUBLE):
                self._serial = self._opened()
                return
            sleep(_POLL_SECONDS)
        raise self._lost(broken) from broken

    def _lost(self, error: Exception) -> NpukitError:
        return NpukitError(f"the link over {self._port} broke: {error}", tries=["plug the device in again"])
