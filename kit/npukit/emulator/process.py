"""The emulator's worker process, and the requests to it (format: `npukit_emulator/__main__.py`)."""

from __future__ import annotations

import importlib.util
import json
import signal
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from npukit.emulator.here import INSTALL
from npukit.errors import NpukitError
from npukit.host.budget import TRUSTED
from npukit.host.programs import start

_WORKER = "npukit_emulator"
_HEADER = struct.Struct("<II")
_START = "import sys; sys.path.append(sys.argv[1]); from npukit_emulator.__main__ import serve; serve()"
"""Program of the worker. This package's folder, in a checkout, is searched after all installed packages."""
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_SECONDS_TO_END = 2.0
_SECONDS_TO_DIE = 60.0
"""Seconds for a killed process to end: freeing the memory of thousands of PEs takes time."""
_MOST_DIAGNOSTICS = 2000
_SIGKILL = 9
_GAVE_UP = 75
"""Exit status of a worker that gives up, with the reason in the last line: `npukit_emulator/core/need.h`."""
_REPORT = ("report it, with the build and what was asked of it: no input may do that",)


class WorkerProcess:
    """A worker process. `close` ends it; so does any end of this process, because the worker's input closes then."""

    def __init__(self, memory: int) -> None:
        """`memory`: memory limit of the worker in bytes."""
        if importlib.util.find_spec(_WORKER) is None:
            raise NpukitError("the built-in emulator is a package of its own, and not installed", tries=[INSTALL])
        self._diagnostics = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = start(
            [sys.executable, "-P", "-c", _START, _PACKAGE_ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._diagnostics,
            memory=memory,
        )
        self.process_id = self._process.pid

    def ask(self, do: str, payload: bytes = b"", **arguments: Any) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for the reply."""
        head = json.dumps({"do": do, **arguments}).encode()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(_HEADER.pack(len(head), len(payload)) + head + payload)
            self._process.stdin.flush()
            reply, data = self._receive()
        except (OSError, ValueError, struct.error, json.JSONDecodeError) as error:
            raise self._dead() from error
        except BaseException:  # the next request would receive this reply
            self.close()
            raise
        if "error" in reply:
            raise NpukitError(reply["error"])
        return reply, data

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(_SECONDS_TO_DIE)
        for stream in (self._process.stdin, self._process.stdout, self._diagnostics):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _receive(self) -> tuple[dict[str, Any], bytes]:
        assert self._process.stdout is not None
        stream = self._process.stdout
        head, body = _HEADER.unpack(stream.read(_HEADER.size))
        return json.loads(stream.read(head)), stream.read(body)

    def _dead(self) -> NpukitError:
        """Error for a dead worker, with the worker's last output."""
        if self._diagnostics.closed:
            return NpukitError("the emulator has been closed")
        try:
            status = self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            return NpukitError("the emulator's worker process gave an answer that makes no sense", tries=_REPORT)
        self._diagnostics.seek(0)
        words = self._diagnostics.read()[-_MOST_DIAGNOSTICS:].decode(errors="replace").strip()
        return death(status, words.splitlines()[-1] if words else "")


def death(status: int, last_words: str) -> NpukitError:
    """The end of a worker process in words, from the exit status and the last line of output."""
    output = f": {last_words}" if last_words else ""
    if status == -_SIGKILL:
        return NpukitError(
            f"the emulator's worker process was killed by SIGKILL{output}",
            facts=["the system kills what takes too much memory"],
            tries=["fewer PEs", "close other programs"],
        )
    if status < 0:
        known = -status in set(signal.Signals)
        name = signal.Signals(-status).name if known else f"signal {-status}"
        return NpukitError(f"the emulator crashed by {name}{output}", tries=_REPORT)
    if status == _GAVE_UP:
        return NpukitError(
            f"the emulator's worker process gave up{output}", tries=["fewer PEs", "fewer --cases", TRUSTED]
        )
    if last_words.startswith(("ModuleNotFoundError", "ImportError")):
        return NpukitError(f"the emulator's worker process did not start{output}", tries=["npukit doctor", INSTALL])
    return NpukitError(f"the emulator's worker process ended with status {status}{output}", tries=_REPORT)
