"""The address at which a tracker listens."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from npukit.errors import NpukitError

_CONNECT_SECONDS = 5.0


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
