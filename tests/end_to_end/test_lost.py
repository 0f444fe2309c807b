"""A target that disappears during a run: a single-line error names the target, for every verb."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import need
from npukit import api
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.link.session import Session
from npukit.measure.bench import bench
from npukit.measure.cases import Cases, load_cases
from npukit.measure.target import Target, open_target
from npukit.measure.validate import validate
from npukit.progress import Item, Silent
from npukit.project.build_folder import GOLDEN, Build


class Loses(Silent):
    """Progress that calls `lose` after the work has begun."""

    def __init__(self, lose: Callable[[], None]) -> None:
        self._lose = lose

    def track(self, items: Sequence[Item], name: str) -> Iterator[Item]:
        for number, item in enumerate(items):
            if number == 1:
                self._lose()
            yield item


def golden(built: Build) -> Cases:
    return load_cases(built.folder / GOLDEN, built.net(), None)


def at_work(verb: str, target: Target, built: Build, lose: Callable[[], None]) -> None:
    net, plan, cases = built.net(), built.plan(), golden(built)
    if verb == "validate":
        validate(target, net, plan, cases, Loses(lose))
    else:
        bench(target, net, plan, cases, built.board.core.clock_hz, 3, Loses(lose))


@pytest.fixture(scope="module")
def on_mesh(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("mesh") / "out", pes=1)


@pytest.fixture(scope="module")
def on_stock_board(tmp_path_factory: pytest.TempPathFactory) -> Build:
    need("qemu-system-arm")
    return shared_build(DIGITS / "digits_int8.tflite", tmp_path_factory.mktemp("stock") / "out", "mps2-an386")


@pytest.mark.parametrize("verb", ["validate", "bench"])
def test_the_emulators_worker_dies(on_mesh: Build, verb: str) -> None:
    with Emulator(on_mesh.board, on_mesh.images()) as emulator, Session(emulator, on_mesh.build_id) as session:
        target = Target("emulator", session, on_mesh.board)
        with pytest.raises(NpukitError, match=r"worker process .* SIGKILL"):
            at_work(verb, target, on_mesh, lambda: os.kill(emulator.worker_process_id, signal.SIGKILL))


def at_a_line(built: Build) -> tuple[subprocess.Popen[bytes], str]:
    """QEMU as a device at the returned port; the host cannot see that the device is an emulator."""
    board, port = built.board, free_port()
    assert board.qemu
    machine = ["qemu-system-arm", "-machine", board.qemu.machine, "-icount", "shift=0", "-nodefaults"]
    image = ["-kernel", str(built.images()[0].elf), "-display", "none"]
    process = subprocess.Popen([*machine, *image, "-serial", f"tcp:127.0.0.1:{port},server,nowait"])
    until = time.monotonic() + 30
    while not listens(port) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(0.5)  # bytes sent before the firmware listens would wait until QEMU polls again
    return process, f"socket://127.0.0.1:{port}"


def free_port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def listens(port: int) -> bool:
    with closing(socket.socket()) as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("verb", ["validate", "bench"])
def test_a_device_is_unplugged(on_stock_board: Build, verb: str) -> None:
    process, port = at_a_line(on_stock_board)
    try:
        with (
            open_target(on_stock_board, port) as target,
            pytest.raises(NpukitError, match=f"the link over {port} broke"),
        ):
            at_work(verb, target, on_stock_board, process.kill)
    finally:
        process.kill()
        process.wait()


def test_qemu_at_a_line_counts_no_cycles(on_stock_board: Build, tmp_path: Path) -> None:
    """QEMU's ticks are no cycles, whatever the port's name."""
    process, port = at_a_line(on_stock_board)
    try:
        measured = api.bench(on_stock_board, on=port, frames=1)
        assert (measured.latency_cycles, measured.interval_cycles) == (None, None)
        assert {layer.cycles for layer in measured.layers} == {None}
        assert (measured.instructions or 0) > 1000
    finally:
        process.kill()
        process.wait()
