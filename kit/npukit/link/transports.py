"""Serial devices and everything pyserial can reach by URL, as transports."""

from __future__ import annotations

from time import monotonic

import serial

from npukit.errors import NpukitError

_POLL_SECONDS = 0.02


class SerialTransport:
    """A serial port, by device name or URL (`/dev/ttyACM0`, `COM3`, `socket://host:port`, `rfc2217://host:port`)."""

    def __init__(self, port: str, baud: int) -> None:
        self._port = port
        try:
            # The port's own timeout stays as it is: to change it renegotiates the line on some URLs.
            self._serial = serial.serial_for_url(port, baudrate=baud, timeout=_POLL_SECONDS, write_timeout=10)
        except (serial.SerialException, ValueError, OSError) as error:
            raise NpukitError(
                f"port {port} cannot be opened: {error}",
                tries=["python -m serial.tools.list_ports", "another program may hold the port"],
            ) from error

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
            self._serial.flush()
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

    def close(self) -> None:
        self._serial.close()

    def _lost(self, error: Exception) -> NpukitError:
        return NpukitError(f"the link over {self._port} broke: {error}", tries=["plug the device in again"])
