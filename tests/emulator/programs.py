"""Small programs for the emulated PEs: C through Zig's compiler, or assembly inside it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from helpers import ZIG
from npukit.board.board import load_board
from npukit.board.cores import CORES
from npukit.emulator.builtin import Emulator
from npukit.emulator.fault_plan import FaultPlan
from npukit.project.images.image import Image

_HERE = Path(__file__).parent / "c"
_FLAGS = (
    "-std=c11",
    "-O2",
    "-g",
    "-nostdlib",
    "-ffreestanding",
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-fno-sanitize=undefined",
    "-Wall",
    "-Wextra",
    "-Werror",
)

RESULTS = 0x1_0000
"""Address of a program's results: `RESULTS` in board.h."""


def program(source: str, cpu: str = "cortex-m4f") -> Path:
    """The ELF file of a C program with a `main`. Compiled once and kept."""
    flags = [*CORES[cpu].zig.split(), *_FLAGS]
    everything = [source, *(path.read_text() for path in sorted(_HERE.iterdir())), *flags]
    name = hashlib.sha256("\0".join(everything).encode()).hexdigest()[:16]
    elf = Path(tempfile.gettempdir()) / "npukit-test-programs" / f"{name}.elf"
    if not elf.is_file():
        _compile(source, elf, flags)
    return elf


def running(*programs: tuple[Path, tuple[int, ...]], board: str = "pe-mesh", plan: FaultPlan | None = None) -> Emulator:
    """A board whose PEs run these programs."""
    return Emulator(load_board(board), [Image(elf, pes) for elf, pes in programs], plan=plan)


def run_to_sleep(emulator: Emulator) -> None:
    """Run until every PE sleeps for good; the UART must stay silent. Limit: 120 seconds on a loaded machine."""
    assert emulator.read(120) == b""


def words(emulator: Emulator, pe: int, count: int, address: int = RESULTS) -> list[int]:
    data = emulator.read_memory(pe, address, 4 * count)
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _compile(source: str, elf: Path, flags: list[str]) -> None:
    elf.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=elf.parent) as folder:
        main, made = Path(folder) / "main.c", Path(folder) / "made.elf"
        main.write_text(source)
        zig = [*ZIG, *flags, f"-I{_HERE}"]
        link = [
            str(main),
            str(_HERE / "start.c"),
            f"-Wl,-T,{_HERE / 'link.ld'}",
            "-Wl,-e,reset_handler",
            "-o",
            str(made),
        ]
        result = subprocess.run([*zig, *link], capture_output=True, text=True, timeout=300, check=False)
        assert result.returncode == 0, result.stderr
        made.replace(elf)
