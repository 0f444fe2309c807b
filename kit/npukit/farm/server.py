"""A board as a standard TVM RPC server. With `client.py` the door to TVM's RPC.

A client finds the network as the server's system library, with one function, `run`: inputs first, then outputs.

    remote = tvm.rpc.connect_tracker(host, port).request("pe-mesh")
    network, device = remote.system_lib(), remote.cpu()
    network["run"](tvm.runtime.tensor(image, device), scores)
    network.time_evaluator("run", device, number=3)(image, scores).mean     # by the board's cycles
"""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import tvm_ffi
from tvm import rpc

from npukit.accel.plugins import name_plugins, named_plugins
from npukit.errors import NpukitError
from npukit.farm.address import Address
from npukit.farm.served import ServedBoard

RUN = "run"
_PORTS = 100
"""Ports that are tried, one after the other, where the first is taken."""
_POLL_SECONDS = 0.5


class Server:
    """A server, in processes of its own. Every client has the board to itself until it leaves."""

    def __init__(
        self, folder: Path, on: str | None, host: str, port: int, key: str, tracker: Address | None = None
    ) -> None:
        register = partial(register_board, str(folder.resolve()), on, named_plugins())
        to = (tracker.host, tracker.port) if tracker else None
        self._server = rpc.Server(
            host, port, port + _PORTS, key=key, tracker_addr=to, silent=True, server_init_callback=register
        )
        self.port: int = self._server.port
        self.key = key

    def wait(self) -> None:
        """Returns when the server ends, which it does not by itself."""
        process = self._server.proc
        while process is not None and process.is_alive():
            sleep(_POLL_SECONDS)
        raise NpukitError(f"the server of port {self.port} has ended", tries=["npukit serve again"])

    def close(self) -> None:
        self._server.terminate()


def register_board(folder: str, on: str | None, plugins: Mapping[str, Path]) -> None:
    """Registers what clients may call, in the server's process, before it forks one for each client."""
    name_plugins(plugins)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    board = ServedBoard(Path(folder), on)
    run = partial(_run, board)
    for name, function in {
        "ffi.SystemLib": _system_library(),
        "tvm.rpc.server.ModuleGetFunction": _function_getter(run),
        "runtime.RPCTimeEvaluator": _time_evaluator(board),
        f"npukit.{RUN}": run,
        "npukit.describe": lambda: json.dumps(board.describe()),
        "npukit.bench": lambda frames: json.dumps(board.bench(frames)),
        "npukit.trial": lambda archive: json.dumps(board.trial(bytes(archive))),
    }.items():
        tvm_ffi.register_global_func(name, _with_whole_errors(function), override=True)


def _end_with_parent(parent: int) -> None:
    """TVM's server would live on."""
    while os.getppid() == parent:
        sleep(_POLL_SECONDS)
    os._exit(1)


def _system_library() -> Callable[..., Any]:
    """The network as a module: TVM's own, empty; `_function_getter` says what is in it."""
    original = tvm_ffi.get_global_func("ffi.SystemLib")
    return lambda *prefix: original(*prefix)


def _function_getter(run: Callable[..., None]) -> Callable[..., Any]:
    original = tvm_ffi.get_global_func("tvm.rpc.server.ModuleGetFunction")

    def function_of(module: Any, name: str, with_imports: bool) -> Any:
        return run if _is_network(module, name) else original(module, name, with_imports)

    return function_of


def _time_evaluator(board: ServedBoard) -> Callable[..., Any]:
    """TVM's time evaluator, but for the network: that is timed by the board's cycles."""
    original = tvm_ffi.get_global_func("runtime.RPCTimeEvaluator")

    def evaluator_of(module: Any, name: str, *settings: Any) -> Any:
        if not _is_network(module, name):
            return original(module, name, *settings)
        _, _, number, repeat, least_ms, *_ = settings
        return _with_whole_errors(partial(_timed, board, number, repeat, least_ms / 1e3))

    return evaluator_of


def _is_network(module: Any, name: str) -> bool:
    return name == (f"npukit.{RUN}" if module is None else RUN) and (module is None or module.kind == "library")


def _run(board: ServedBoard, *tensors: Any) -> None:
    inputs, outputs = _split(board, tensors)
    results = board.run([tensor.numpy() for tensor in inputs])
    for index, (result, tensor) in enumerate(zip(results, outputs, strict=True)):
        if str(tensor.dtype) != str(result.dtype) or tensor.numpy().size != result.size:
            raise NpukitError(f"output {index} is {result.dtype} {result.shape}, not {tensor.dtype} {tensor.shape}")
        tensor.copyfrom(result.reshape(tensor.shape))


def _timed(board: ServedBoard, number: int, repeat: int, least_seconds: float, *tensors: Any) -> bytes:
    inputs, _ = _split(board, tensors)
    seconds = board.time([tensor.numpy() for tensor in inputs], number, repeat, least_seconds)
    return struct.pack(f"@{repeat}d", *seconds)


def _split(board: ServedBoard, tensors: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs and outputs."""
    about = board.describe()
    inputs, outputs = len(about["inputs"]), len(about["outputs"])
    if len(tensors) != inputs + outputs:
        raise NpukitError(f"{RUN} takes {inputs} inputs, then {outputs} outputs, not {len(tensors)} tensors")
    return tensors[:inputs], tensors[inputs:]


def _with_whole_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """An error's way out goes to the client as well."""

    def called(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except NpukitError as error:
            tries = "; ".join(error.tries)
            raise RuntimeError(error.message + (f". Things to try: {tries}" if tries else "")) from error

    return called
