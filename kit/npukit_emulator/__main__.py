# SPDX-License-Identifier: GPL-2.0-only
"""The worker process: requests on standard input, replies on standard output.

A message, either way, is two little-endian 32-bit lengths, then a JSON object of the first length, then bytes of the
second. The JSON of a request has `do`, the name of a method of `Worker` or `EmulatedBoard`, and the method's arguments;
the bytes are its argument `data`. The JSON of a reply is the result, or `{"error": text}`. The process ends at the end
of the input.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any

from npukit_emulator.board import CannotStart, EmulatedBoard, Flash, NoSuchPe
from npukit_emulator.compiler import CannotCompile

_CAUSE_POWER = 0
_HEADER = struct.Struct("<II")
_WITH_DATA = ("send", "write", "alone")


class Worker:
    """A worker with one board."""

    def __init__(self) -> None:
        self._board: EmulatedBoard | None = None
        self._flash: Flash | None = None
        self._wanted: dict[str, Any] = {}

    def create(self, flash: dict[str, Any] | None = None, **wanted: Any) -> None:
        """Set up the board: PEs powered but not running, or the root PE starting from flash."""
        self._flash = Flash(**flash) if flash else None
        self._wanted = wanted
        self.restart(_CAUSE_POWER)

    def restart(self, cause: int) -> None:
        """Set up the board again. `cause`: of a start from flash, hardware manual, section 7.1."""
        if self._board is not None:
            self._board.close()
        self._board = EmulatedBoard(**self._wanted, flash=self._flash, cause=cause)

    def method(self, name: str) -> Callable[..., dict[str, Any] | bytes | tuple[dict[str, Any], bytes] | None]:
        """The method that answers a request: the worker's, or the board's."""
        if name in ("create", "restart"):
            return getattr(self, name)
        if self._board is None:
            raise CannotStart("the board has not been set up")
        return getattr(self._board, name)


def answer(worker: Worker, do: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    try:
        result = worker.method(do)(**arguments)
    except (CannotStart, CannotCompile) as error:
        return {"error": f"the emulator cannot start: {error}"}, b""
    except NoSuchPe as error:
        return {"error": str(error)}, b""
    if isinstance(result, tuple):
        return result
    return ({}, result) if isinstance(result, bytes) else (result or {}, b"")


def serve() -> None:
    # Printed text must not disturb the replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker, requests = Worker(), sys.stdin.buffer
    while len(header := requests.read(_HEADER.size)) == _HEADER.size:
        head, body = _HEADER.unpack(header)
        arguments, data = json.loads(requests.read(head)), requests.read(body)
        do = arguments.pop("do")
        reply, output = answer(worker, do, {**arguments, "data": data} if do in _WITH_DATA else arguments)
        text = json.dumps(reply).encode()
        replies.write(_HEADER.pack(len(text), len(output)) + text + output)
        replies.flush()


if __name__ == "__main__":
    serve()
