"""Where a build runs: the built-in emulator, Renode, QEMU, or a device on a serial port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from npukit.board.board import Board
from npukit.emulator.builtin import Emulator
from npukit.emulator.qemu import QemuMachine
from npukit.emulator.renode.machine import RenodeMachine
from npukit.errors import NpukitError
from npukit.link.messages import DRAM_PE
from npukit.link.session import Session
from npukit.link.transport import Transport
from npukit.link.transports import open_serial
from npukit.project.build_folder import Build


@dataclass(frozen=True)
class Target:
    """A running build and the session with it."""

    name: str
    session: Session
    board: Board

    @property
    def counts_cycles(self) -> bool:
        """QEMU counts instructions, not cycles; in Renode who waits for another PE waits for its turn."""
        several_in_renode = self.name == "renode" and self.session.device.pe_count > 1
        return self.name != "qemu" and not several_in_renode


@contextmanager
def open_target(build: Build, on: str | None = None) -> Iterator[Target]:
    """Start the build on `on` (by default the first emulator the board runs on) and shake hands."""
    name = on or build.board.runs_on[0]
    transport = _start(build, name)
    try:
        with Session(transport, build_id=build.build_id) as session:
            if name != "emulator" and build.dram():
                session.write_memory(0, build.dram() or b"", DRAM_PE)
            yield Target(name, session, build.board)
    finally:
        transport.close()


def _start(build: Build, name: str) -> Transport:
    if name not in ("emulator", "renode", "qemu"):
        return open_serial(name, build.board.uart.baud)
    if name not in build.board.runs_on:
        raise NpukitError(
            f"board {build.board.name} does not run on {name}",
            tries=[f"--on {other}" for other in build.board.runs_on],
        )
    if name == "renode" and build.dram() is not None:
        raise NpukitError(
            f"{build.manifest.model} is built to keep tensors or constants in DRAM, which this board has not in Renode",
            tries=["--on emulator", "npukit build --objective latency"],
        )
    if name == "qemu":
        return QemuMachine(build.board, build.images()[0].elf)
    if name == "renode":
        return RenodeMachine(build.board, build.images())
    return Emulator(build.board, build.images(), build.models(), build.dram() or b"")
