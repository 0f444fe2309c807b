"""The devices in C#, compiled with stubs of Renode and run under Mono: registers, memory and time, from Python."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from types import TracebackType

import pytest

from npukit.board.board import Board
from npukit.emulator.renode.render import MODELS, devices_source

STUBS = Path(__file__).parent / "csharp"
DEVICES = tuple(name for name in MODELS if name not in ("Timer.cs", "Uart.cs", "LinkTerminal.cs"))
FIGURES = (
    "width",
    "lanes",
    "port_bytes",
    "requantisers",
    "window_rows",
    "parameter_blocks",
    "parameter_bytes_per_channel",
    "accumulator_bits",
    "setup_cycles",
    "chain_cycles",
    "drain_cycles",
)
"""Figures of the MAC array in the order of the constructor's arguments."""

NOC_FIGURES = (
    "port_bytes_per_cycle",
    "setup_cycles",
    "packet_flits",
    "buffer_packets",
    "hop_cycles",
    "chip_hop_cycles",
    "chip_links_per_border",
    "chip_link_bytes_per_100_cycles",
    "border_packets",
    "dram_bytes",
    "dram_bytes_per_cycle",
    "dram_latency_cycles",
    "dram_burst_bytes",
    "dram_banks",
    "dram_row_bytes",
    "dram_row_cycles",
)
"""Figures of the network-on-chip in the order of the arguments of `Mesh`."""


def compile_devices(folder: Path) -> Path:
    """The program, or skip where there is no Mono."""
    if shutil.which("mcs") is None or shutil.which("mono") is None:
        pytest.skip("Mono (mcs, mono) is not installed: the devices in C# are not run")
    (folder / "Devices.cs").write_text(devices_source(DEVICES))
    program, sources = folder / "bench.exe", [folder / "Devices.cs", *sorted(STUBS.glob("*.cs"))]
    command = ["mcs", "-langversion:7", "-warnaserror", f"-out:{program}", *sources]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return program


class Devices:
    """MAC arrays and DMA engines of a board's PEs, at time 0."""

    def __init__(self, program: Path, board: Board) -> None:
        self._sram_bytes, self._pes = board.memory[0].size, board.pe_count
        self._process = subprocess.Popen(
            ["mono", program, *_figures(board)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Devices:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(10)

    def array(self, pe: int, register: int) -> int:
        return self._ask("a", pe, struct.pack("<i", register), 4)

    def set_array(self, pe: int, register: int, value: int) -> None:
        self._tell("A", pe, struct.pack("<iI", register, value))

    def noc(self, pe: int, register: int) -> int:
        return self._ask("n", pe, struct.pack("<i", register), 4)

    def set_noc(self, pe: int, register: int, value: int) -> None:
        self._tell("N", pe, struct.pack("<iI", register, value))

    def flash(self, register: int) -> int:
        return self._ask("f", 0, struct.pack("<i", register), 4)

    def set_flash(self, register: int, value: int) -> None:
        self._tell("F", 0, struct.pack("<iI", register, value))

    @property
    def flash_memory(self) -> int:
        """The PE number under which the flash is read and written."""
        return self._pes

    def read(self, pe: int, address: int = 0, size: int | None = None) -> bytes:
        count = self._sram_bytes if size is None else size
        self._tell("m", pe, struct.pack("<ii", address, count))
        return self._take(count)

    def write(self, pe: int, address: int, data: bytes) -> None:
        self._tell("M", pe, struct.pack("<ii", address, len(data)) + data)

    def events(self, pe: int) -> list[int]:
        """When the PE's event register was set, since the last time this was asked."""
        count = self._ask("e", pe, b"", 4)
        return list(struct.unpack(f"<{count}Q", self._take(8 * count)))

    def let_time_pass(self) -> None:
        """Until nothing is left to happen; then the clock is at 0 again."""
        self._tell("T", 0, b"")

    def _ask(self, request: str, pe: int, arguments: bytes, size: int) -> int:
        self._tell(request, pe, arguments)
        return int.from_bytes(self._take(size), "little")

    def _tell(self, request: str, pe: int, arguments: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(request.encode() + struct.pack("<i", pe) + arguments)
        self._process.stdin.flush()

    def _take(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        assert len(data) == size, "the program has ended"
        return data


def _figures(board: Board) -> list[str]:
    noc, slot, mesh = board.noc, board.accelerator_named("mac_array"), board.mesh
    assert noc is not None
    assert slot is not None
    figures = [
        *(mesh.chips.columns, mesh.chips.rows, mesh.pes.columns, mesh.pes.rows),
        *(int(getattr(noc, name)) for name in NOC_FIGURES),
        *(board.pe_count, board.memory[0].size, noc.flags),
        *(slot.figures[name] for name in FIGURES),
    ]
    assert board.flash is not None
    parts = ("bytes", "page_bytes", "loader_bytes", "once_bytes", "erase_cycles", "program_cycles")
    flash = [str(getattr(board.flash, name)) for name in parts]
    return [*map(str, figures), " ".join(f"{a}-{b}" for a, b in mesh.dead_links), *flash]
