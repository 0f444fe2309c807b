# SPDX-License-Identifier: GPL-2.0-only
"""The worker process: requests on standard input, replies on standard output.

A message, either way, is two little-endian 32-bit lengths, then a JSON object of the first length, then bytes of the
second. The JSON of a request has `do`, the name of a method below, and the method's arguments. The JSON of a reply is
the result, or `{"error": text}`. The process ends at the end of the input.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from npukit_emulator.board import Accelerator, CannotStart, Core, EmulatedBoard, Flash, NoSuchPe, Program
from npukit_emulator.compiler import CannotCompile

Reply = tuple[dict[str, Any], bytes]

_CAUSE_POWER = 0
_HEADER = struct.Struct("<II")


class Worker:
    """A worker with one board. Each public method answers a request."""

    def __init__(self) -> None:
        self._board: EmulatedBoard | None = None
        self._flash: Flash | None = None
        self._created: dict[str, Any] = {}

    @property
    def _running(self) -> EmulatedBoard:
        if self._board is None:
            raise CannotStart("the board has not been set up")
        return self._board

    def create(self, request: dict[str, Any], _: bytes) -> Reply:
        """Set up the board: PEs powered but not running, or the root PE starting from flash."""
        flash = request.get("flash")
        self._flash = Flash(**flash) if flash else None
        self._created = request
        self._create(_CAUSE_POWER)
        return {}, b""

    def restart(self, request: dict[str, Any], _: bytes) -> Reply:
        """Restart a board with flash. `cause`: hardware manual, section 7.1."""
        self._create(request["cause"])
        return {}, b""

    def cut_power(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.cut_power(request["operation"], request["chance"])
        return {}, b""

    def _create(self, cause: int) -> None:
        request = self._created
        if self._board is not None:
            self._board.close()
        accelerators = [Accelerator(**accelerator) for accelerator in request["accelerators"]]
        cores = [Core(**core) for core in request["cores"]]
        self._board = EmulatedBoard(request["figures"], cores, accelerators, request["memories"], request["rules"])
        self._board.set_dead(request["dead_pes"], request["dead_links"])
        for pe, size in request["small_memories"].items():
            self._board.set_memory(int(pe), size)
        self._watch(self._board)
        if self._flash:
            self._board.start_from_flash(request["root"], self._flash, cause)
        else:
            self._board.power_up(request["root"], [Program(**program) for program in request["programs"]])

    def _watch(self, board: EmulatedBoard) -> None:
        request = self._created
        board.set_workers(request["workers"])
        if request["strict"]:
            board.be_strict(request["races"])
        if request["debug"] is not None:
            board.debug(request["debug"])
        if request["faults"]:
            board.inject(**request["faults"])

    def reset(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.reset(request["pes"])
        return {}, b""

    def run(self, request: dict[str, Any], _: bytes) -> Reply:
        """Run until a cycle, output (with `stop_at_output`), or `seconds` of real time. The payload is the output."""
        board = self._running
        outcome = board.run(request["until"], request["stop_at_output"], request["seconds"])
        reply: dict[str, Any] = {"outcome": outcome, "now": board.now()}
        if outcome == "fault":
            reply["fault"] = board.fault()
        return reply, board.take()

    def send(self, _: dict[str, Any], payload: bytes) -> Reply:
        """Send bytes to the board's UART."""
        self._running.send(payload)
        return {}, b""

    def read(self, request: dict[str, Any], _: bytes) -> Reply:
        data = self._running.read(request["place"], request["address"], request["size"])
        return {"there": data is not None}, data or b""

    def write(self, request: dict[str, Any], payload: bytes) -> Reply:
        return {"there": self._running.write(request["place"], request["address"], payload)}, b""

    def trace(self, request: dict[str, Any], _: bytes) -> Reply:
        """Turn the trace on or off. `marks`: by PE, ascending, instructions whose executions are recorded."""
        for pe, addresses in request["marks"]:
            self._running.mark(pe, addresses)
        self._running.trace(request["on"])
        return {}, b""

    def alone(self, request: dict[str, Any], payload: bytes) -> Reply:
        """Run layers of a PE's next frame alone, once per case. The payload is a table, places and input bytes."""
        self._running.alone(request["pe"], request["span"], request["counts"], payload)
        return {}, b""

    def alone_made(self, request: dict[str, Any], _: bytes) -> Reply:
        return {}, self._running.alone_made(request["pe"], request["size"])

    def take_trace(self, _: dict[str, Any], __: bytes) -> Reply:
        return {}, self._running.take_trace()

    def disturb(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.disturb(request["seed"])
        return {}, b""

    def share(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.share(request["pes"])
        return {}, b""

    def wait(self, request: dict[str, Any], _: bytes) -> Reply:
        return self._running.wait(request["pe"]), b""

    def notes(self, _: dict[str, Any], __: bytes) -> Reply:
        return {"notes": self._running.notes()}, b""

    def breakpoint(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.breakpoint(request["address"], request["on"])
        return {}, b""

    def resume(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.resume(request["step"])
        return {}, b""

    def registers(self, request: dict[str, Any], _: bytes) -> Reply:
        return {"values": self._running.registers(request["pe"])}, b""

    def set_register(self, request: dict[str, Any], _: bytes) -> Reply:
        self._running.set_register(request["pe"], request["number"], request["value"])
        return {}, b""

    def counters(self, request: dict[str, Any], _: bytes) -> Reply:
        return {**self._running.counters(request["pe"]), "now": self._running.now()}, b""


def answer(worker: Worker, request: dict[str, Any], payload: bytes) -> Reply:
    function: Callable[[dict[str, Any], bytes], Reply] = getattr(worker, request["do"])
    try:
        return function(request, payload)
    except (CannotStart, CannotCompile) as error:
        return {"error": f"the emulator cannot start: {error}"}, b""
    except NoSuchPe as error:
        return {"error": str(error)}, b""


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None at the end of the input."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    head, body = _HEADER.unpack(header)
    return json.loads(stream.read(head)), stream.read(body)


def send(stream: BinaryIO, reply: dict[str, Any], payload: bytes) -> None:
    head = json.dumps(reply).encode()
    stream.write(_HEADER.pack(len(head), len(payload)) + head + payload)
    stream.flush()


def serve() -> None:
    # Printed text must not disturb the replies.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    worker = Worker()
    while (message := receive(sys.stdin.buffer)) is not None:
        send(replies, *answer(worker, *message))


if __name__ == "__main__":
    serve()
