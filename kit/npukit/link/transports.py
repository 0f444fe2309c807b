"""Serial devices and everything pyserial can reach by URL, as transports."""

from __future__ import annotations

from time import monotonic, sleep

import serial

from npukit.errors import NpukitError

_POLL_SECONDS = 0.02
_WRITE_SECONDS = 10
_BREAK_BAUD = 1200
"""So slow that the zeros of one byte are a break to the board. Adapters that cannot send breaks can do that."""
_BREAK_SECONDS = 0.25
"""More than the byte takes, by much: an adapter may still have others before it."""


def open_serial(port: str, baud: int) -> SerialTransport:
    """A serial port by device name or URL: `/dev/ttyACM0`, `COM3`, `socket://host:port`, `rfc2217://host:port`."""
    try:
        # The read timeout never changes: with some URLs to change it means to renegotiate the line.
        line = serial.serial_for_url(port, baud, timeout=_POLL_SECONDS, write_timeout=_write_timeout(port))
    except (serial.SerialException, ValueError, OSError) as error:
        raise NpukitError(
            f"port {port} cannot be opened: {error}",
            tries=["python -m serial.tools.list_ports", "close the other program that holds the port"],
        ) from error
    return SerialTransport(port, line)


class SerialTransport:
    """An open serial port."""

    def __init__(self, port: str, line: serial.Serial) -> None:
        self._port = port
        self._serial = line

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._lost(error) from error

    def read(self, timeout: float) -> bytes:
        until = monotonic() + timeout
        try:
            data = self._serial.read(1)
            while not data and monotonic() < until:
                data = self._serial.read(1)
            return data + self._serial.read(self._serial.in_waiting) if data else b""
        except (serial.SerialException, OSError) as error:
            raise self._lost(error) from error

    def restart(self) -> None:
        """A break on the line: it restarts a board that has a loader."""
        baud = self._serial.baudrate
        try:
            self._serial.baudrate = _BREAK_BAUD
            self._serial.write(b"\0")
            self._serial.flush()
            sleep(_BREAK_SECONDS)
            self._serial.baudrate = baud
            self._serial.reset_input_buffer()
        except (serial.SerialException, OSError, ValueError) as error:
            raise self._lost(error) from error

    def close(self) -> None:
        self._serial.close()

    def _lost(self, error: Exception) -> NpukitError:
        return NpukitError(f"the link over {self._port} broke: {error}", tries=["plug the device in again"])


def _write_timeout(port: str) -> float | None:
    """A local device that takes nothing must not hang the host. URLs have no such limit; some refuse it."""
    return None if "://" in port else _WRITE_SECONDS
