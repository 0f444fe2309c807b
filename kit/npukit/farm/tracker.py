"""A TVM tracker: the address, and the entry of a server."""

from __future__ import annotations

import json
import re
import secrets
import socket
import struct
from dataclasses import dataclass
from typing import Any

from npukit.errors import NpukitError

_MAGIC = struct.pack("<i", 0x2F271)
_PUT, _UPDATE_INFO, _PENDING = 3, 5, 7
_LONGEST = 1 << 20
_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_PATIENCE = 12
"""Refreshes to wait for a client that the tracker has sent."""


@dataclass(frozen=True)
class HostPort:
    """A host and a port, written `host:port`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> HostPort:
        match = re.fullmatch(r"(.+):(\d{1,5})", text)
        if match is None or int(match[2]) > 0xFFFF:
            raise NpukitError(f"{text} is not a host and a port", tries=["--tracker 192.168.1.20:9190"])
        return cls(match[1], int(match[2]))

    def check(self) -> None:
        """Raise an error if nothing listens there: TVM would retry for a minute."""
        try:
            socket.create_connection((self.host, self.port), _CONNECT_SECONDS).close()
        except OSError as error:
            raise NpukitError(
                f"no tracker answers at {self}: {error}",
                tries=[
                    f"pip install 'npukit[farm]'; python -m tvm.exec.rpc_tracker --host {self.host} --port {self.port}"
                    # TVM's default last port is below many ports.
                    f" --port-end {self.port + 1}"
                ],
            ) from error


class Tracker:
    """An entry in the tracker's list of servers, while open: the served key, and the word that identifies the next
    client. Raises `OSError` if the tracker does not answer."""

    def __init__(self, address: HostPort, key: str, port: int) -> None:
        self._key, self._port, self._missing = key, port, 0
        self._socket = socket.create_connection((address.host, address.port), _SECONDS)
        self._socket.sendall(_MAGIC)
        if received(self._socket, len(_MAGIC)) != _MAGIC:
            raise ConnectionError(f"{address} is no tracker")
        self._ask(_UPDATE_INFO, {"key": f"server:{key}", "addr": (None, port)})
        self.expected = ""
        self.offer()

    def refresh(self) -> None:
        """Offer the server again if a client was sent and did not come."""
        self._missing = 0 if self.expected in self._ask(_PENDING) else self._missing + 1
        if self._missing > _PATIENCE:
            self.offer()

    def close(self) -> None:
        self._socket.close()

    def offer(self) -> None:
        """Have the tracker send the next client, identified by a new word."""
        self.expected, self._missing = f"{self._key}:{secrets.token_hex(8)}", 0
        self._ask(_PUT, self._key, (self._port, self.expected), None)

    def _ask(self, *request: Any) -> Any:
        text = json.dumps(request).encode()
        self._socket.sendall(struct.pack("<i", len(text)) + text)
        (size,) = struct.unpack("<i", received(self._socket, 4))
        if not 0 < size <= _LONGEST:
            raise ConnectionError("what answers is no tracker")
        try:
            return json.loads(received(self._socket, size))
        except ValueError as error:
            raise ConnectionError("what answers is no tracker") from error


def received(connection: socket.socket, count: int) -> bytes:
    """The next `count` bytes, or a `ConnectionError`."""
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the other side has closed the connection")
        data += part
    return bytes(data)
