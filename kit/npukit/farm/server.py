"""A server on which TVM's clients run and time a board's network: TVM's RPC protocol without access to anything else.

A client finds the network as the server's system library, with a function, `run`: inputs first, then outputs.

    remote = tvm.rpc.connect_tracker(host, port).request("pe-mesh")
    network, device = remote.system_lib(), remote.cpu()
    network["run"](tvm.runtime.tensor(image, device), scores)
    network.time_evaluator("run", device, number=3)(image, scores).mean     # by the board's cycles

TVM's own server accepts addresses from clients and calls any function by name: clients can run any code there.
"""

from __future__ import annotations

import errno
import json
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Any

import numpy as np

from npukit.errors import NpukitError
from npukit.farm.packets import LENGTH
from npukit.farm.served import ServedBoard
from npukit.farm.session import MOST_CLIENT_BYTES, NETWORK, FarmSession, Function
from npukit.farm.tracker import HostPort, Tracker, received

RUN = "run"
_PORTS = 100
"""Ports to try in turn, if the first is taken."""
_POLL_SECONDS = 0.5
_GREETING_SECONDS = 10.0
_MAGIC, _MISMATCH = 0xFF271, 0xFF273
_LONGEST_KEY = 1024


class Server:
    """Serves clients in turn, in a thread. Each client has the board alone until it leaves."""

    def __init__(
        self, board: ServedBoard, host: str, port: int, key: str, tracker: HostPort | None = None, *, trials: bool
    ) -> None:
        self._board, self._functions = board, functions_of(board, trials=trials)
        self._listening = _listening(host, port)
        self._registry, self._tracker = tracker, None
        self._open, self._client = True, None
        self.port: int = self._listening.getsockname()[1]
        self.key = key
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of the server, which is an error."""
        while self._thread.is_alive():
            self._thread.join(_POLL_SECONDS)
        raise NpukitError(f"the server of port {self.port} has ended", tries=["npukit serve again"])

    def close(self) -> None:
        """End the server, after the current request."""
        self._open = False
        if self._client:
            with suppress(OSError):
                self._client.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._board.close()

    def _serve(self) -> None:
        with self._listening:
            while self._open:
                try:
                    if self._registry and not self._tracker:
                        self._tracker = Tracker(self._registry, self.key, self.port)
                    self._serve_next()
                except OSError:  # the tracker is gone, perhaps for a while
                    self._forget_tracker()
                    sleep(_POLL_SECONDS)
        self._forget_tracker()

    def _forget_tracker(self) -> None:
        if self._tracker:
            self._tracker.close()
            self._tracker = None

    def _serve_next(self) -> None:
        try:
            self._client, _ = self._listening.accept()
        except TimeoutError:
            if self._tracker:
                self._tracker.refresh()
            return
        with self._client, suppress(OSError):  # the client has gone
            if self._greeted(self._client):
                _talk(self._client, FarmSession(self._functions))
        self._client = None
        if self._tracker:
            self._tracker.offer()

    def _greeted(self, client: socket.socket) -> bool:
        """Greet a client with the server's key, or with the tracker's word. False for any other client."""
        client.settimeout(_GREETING_SECONDS)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        magic, length = struct.unpack("<ii", received(client, 8))
        if magic != _MAGIC or not 0 <= length <= _LONGEST_KEY:
            return False
        word, *_ = [*received(client, length).split(), b""]
        expected = self._tracker.expected if self._tracker else self.key
        if word != f"client:{expected}".encode():
            client.sendall(struct.pack("<i", _MISMATCH))
            return False
        name = f"server:{self.key}".encode()
        client.sendall(struct.pack("<ii", _MAGIC, len(name)) + name)
        client.settimeout(None)
        return True


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens at the port, or the next free port."""
    for each in range(port, port + _PORTS):
        try:
            family, *_, address = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0]
            found = socket.create_server(address[:2], family=family, backlog=1)
            found.settimeout(_POLL_SECONDS)
            return found
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise NpukitError(
                    f"npukit cannot listen at {host}:{each}: {error}", tries=["--host 127.0.0.1"]
                ) from error
    raise NpukitError(f"the ports {port} to {port + _PORTS - 1} are taken", tries=["another one with --port"])


def _talk(client: socket.socket, session: FarmSession) -> None:
    """Answer the client until it leaves."""
    while True:
        (size,) = LENGTH.unpack(received(client, LENGTH.size))
        if size > MOST_CLIENT_BYTES:
            return
        answer = session.answer(received(client, size)) if size else b""
        if answer is None:
            return
        client.sendall(answer)


def functions_of(board: ServedBoard, *, trials: bool) -> dict[str, Function]:
    """Functions for clients, by name: TVM's names on the way to the network, and npukit's own."""
    run = partial(_run, board)
    return {
        "ffi.SystemLib": lambda *prefix: NETWORK,
        "tvm.rpc.server.ModuleGetFunction": lambda module, name, imports: run if name == RUN else None,
        "runtime.RPCTimeEvaluator": partial(_time_evaluator, board),
        f"npukit.{RUN}": run,
        "npukit.reset": board.reset,
        "npukit.describe": lambda: json.dumps(board.describe()),
        "npukit.bench": lambda frames: json.dumps(board.bench(frames)),
        **({"npukit.trial": lambda archive: json.dumps(board.trial(archive))} if trials else {}),
    }


def _run(board: ServedBoard, *arrays: np.ndarray) -> None:
    inputs, outputs = _split(board, arrays)
    for index, (result, array) in enumerate(zip(board.run(inputs), outputs, strict=True)):
        if array.dtype != result.dtype or array.size != result.size:
            raise NpukitError(f"output {index} is {result.dtype} {result.shape}, not {array.dtype} {array.shape}")
        array[...] = result.reshape(array.shape)


def _time_evaluator(
    board: ServedBoard, module: Any, name: str, _type: int, _id: int, number: int, repeat: int, least_ms: int, *_: Any
) -> Function:
    """TVM's time evaluator for the network, by the board's cycles."""
    if name != (f"npukit.{RUN}" if module is None else RUN):
        raise NpukitError(f"the server has no function {name} to time")

    def timed(*arrays: np.ndarray) -> bytes:
        inputs, _ = _split(board, arrays)
        return struct.pack(f"<{repeat}d", *board.time(inputs, number, repeat, least_ms / 1e3))

    return timed


def _split(board: ServedBoard, arrays: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Sequence[np.ndarray]]:
    """Inputs and outputs among a client's tensors."""
    about = board.describe()
    inputs, outputs = len(about["inputs"]), len(about["outputs"])
    if len(arrays) != inputs + outputs or not all(isinstance(array, np.ndarray) for array in arrays):
        raise NpukitError(f"{RUN} takes {inputs} inputs, then {outputs} outputs, not {len(arrays)} tensors")
    return arrays[:inputs], arrays[inputs:]
