"""Share of the line that bulk transfers use: a 1 Mbit/s UART of the built-in emulator, in the board's time.

    python benchmarks/link_throughput.py [--latency 0 1 4]

Share of the line = bytes of the tensor, memory or image / (seconds * baud / 10). `--latency`: milliseconds between a
reply and the host's next request, as with USB adapters; 0 is the wire alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit import api
from npukit.boot.loader import loader_area
from npukit.boot.provision import takes_of
from npukit.emulator.builtin import Emulator
from npukit.emulator.flashed import FlashedBoard
from npukit.link.flash import LoaderSession
from npukit.link.session import Session
from npukit.project.build_folder import Build

_BITS_PER_BYTE = 10
_SIDE = 128
_MEMORY_BYTES = 64 << 10


class Distant:
    """A transport that delays each write of the host by `milliseconds`."""

    def __init__(self, board: Emulator, milliseconds: float, clock_hz: int) -> None:
        self._board = board
        self._cycles = round(milliseconds * clock_hz / 1000)

    def write(self, data: bytes) -> None:
        self._board.run(self._cycles)
        self._board.write(data)

    def read(self, timeout: float) -> bytes:
        return self._board.read(timeout)

    def close(self) -> None: ...

    def restart(self) -> None:
        assert isinstance(self._board, FlashedBoard)
        self._board.restart()


def large_ends(path: Path) -> Path:
    """A model with an input and an output of 16 KB each."""
    shape, scale, zero = (1, 1, _SIDE, _SIDE), np.float32(0.05), np.int8(0)
    names = [("x", "f", "DequantizeLinear"), ("f", "r", "Relu"), ("r", "y", "QuantizeLinear")]
    nodes = [helper.make_node(op, [a, "s", "z"] if "Linear" in op else [a], [b]) for a, b, op in names]
    constants = [onnx.numpy_helper.from_array(np.array(v), n) for v, n in ((scale, "s"), (zero, "z"))]
    ends = [helper.make_tensor_value_info(name, TensorProto.INT8, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "ends", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)
    return path


def share(board: Emulator, build: Build, size: int, transfer: Callable[[], object]) -> float:
    start = board.time()
    transfer()
    seconds = (board.time() - start) / build.board.core.clock_hz
    return size / (seconds * build.board.uart.baud / _BITS_PER_BYTE)


def network_shares(build: Build, latency: float) -> Iterator[tuple[str, float]]:
    board = Emulator(build.board, build.images())
    with closing(board), Session(Distant(board, latency, build.board.core.clock_hz)) as session:
        data = np.random.default_rng(1).integers(-128, 128, _SIDE * _SIDE, np.int8).tobytes()
        yield "write an input", share(board, build, len(data), lambda: session.write_input(0, data))
        session.run()
        yield "read an output", share(board, build, len(data), lambda: session.read_output(0))
        read = lambda: session.read_memory(0, _MEMORY_BYTES, pe=9)  # noqa: E731
        yield "read another PE's memory", share(board, build, _MEMORY_BYTES, read)


def flash_share(build: Build, latency: float, loader: bytes, folder: Path) -> Iterator[tuple[str, float]]:
    image = np.random.default_rng(2).bytes(_MEMORY_BYTES)
    with flashed(build, loader, folder) as board:
        session = LoaderSession(Distant(board, latency, build.board.core.clock_hz))
        yield "write the flash", share(board, build, len(image), lambda: session.write(0, image))


@contextmanager
def flashed(build: Build, loader: bytes, folder: Path) -> Iterator[FlashedBoard]:
    file = folder / "flash"
    file.unlink(missing_ok=True)
    with closing(FlashedBoard(build.board, file, loader)) as board:
        yield board


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", nargs="*", type=float, default=[0, 1, 4], metavar="MS")
    wanted = parser.parse_args().latency
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        build = api.build(large_ends(folder / "ends.onnx"), output=folder / "ends", options=api.Options(pes=1))
        loader = loader_area(build.board, takes_of(None).record())
        print("| transfer | " + " | ".join(f"{ms:g} ms" for ms in wanted) + " |")
        rows: dict[str, list[float]] = {}
        for latency in wanted:
            for name, found in (*network_shares(build, latency), *flash_share(build, latency, loader, folder)):
                rows.setdefault(name, []).append(found)
        for name, shares in rows.items():
            print(f"| {name} | " + " | ".join(f"{100 * one:.1f} %" for one in shares) + " |")


if __name__ == "__main__":
    main()
