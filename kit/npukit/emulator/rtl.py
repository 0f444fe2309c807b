"""Accelerators and network in RTL: Verilog, compiled by Verilator to libraries for the built-in emulator, in the
user's cache.

The emulator runs the library beside its C model. Bytes and cycles must be equal.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from npukit.board.board import AcceleratorSlot, Board, Grid
from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.host.programs import find_program, run
from npukit.progress import SILENT, Progress

VERILATOR = "verilator"
GET_VERILATOR = "apt install verilator, 5.006 or later"
COMPILERS = ("c++", "g++", "clang++")
GET_COMPILER = "apt install g++"
OTHER_WAY = "--on emulator, with the C models"

NETWORK = "network"
"""The library of a board's network, beside those of its accelerators."""
_ARRAY, _ARRAY_BOARD = "mac_array", "pe-mesh"
_NETWORK_FOLDERS = ("network", "dma", "node")
_NETWORK_PROGRAMS = ("network.cpp", "dram.cpp", "chip_links.cpp")
_OF_CHIP_LINKS = ("chip_hop_cycles", "chip_links_per_border", "chip_link_bytes_per_cycle", "border_packets")
_FREE_OF_NETWORK = ("base", "dram_bytes", *_OF_CHIP_LINKS)
"""Figures of the network taken from the board. All others must equal the figures of the RTL's own board."""
_SECONDS = 600
_VERILATE = ("--cc", "--assert", "-O3", "--x-assign", "fast", "-Wno-fatal", "-Wno-lint", "-Wno-style")
_COMPILE = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-pthread")
_DEFINES = ("VM_COVERAGE=0", "VM_SC=0", "VL_USER_STOP")
_RUNTIME = ("verilated.cpp", "verilated_threads.cpp")
_WAVES = ("--trace",), ("VM_TRACE=1", "VM_TRACE_VCD=1", "VM_TRACE_FST=0"), ("verilated_vcd_c.cpp",)
_NO_WAVES: tuple[tuple[str, ...], ...] = (), ("VM_TRACE=0",), ()
"""The options for Verilator, the compiler's defines, and files of Verilator's runtime."""
_SUFFIXES = (".sv", ".v")
_MOST_MESSAGE = 2000


@dataclass(frozen=True)
class Rtl:
    """An accelerator or network in Verilog: the folder of its sources, the top module, and values of the module's
    parameters. `waves`: for a library with waveforms, a slower library. `more`: further folders of sources.
    `programs`: the files in C++ around the module, in the folder `device` of the RTL."""

    name: str
    folder: Path
    top: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    waves: bool = False
    more: tuple[Path, ...] = ()
    programs: tuple[str, ...] = ("device.cpp",)

    @property
    def extras(self) -> tuple[tuple[str, ...], ...]:
        """Further words for Verilator, defines, and files of the runtime."""
        return _WAVES if self.waves else _NO_WAVES

    def sources(self) -> list[Path]:
        """The files of the folders, packages first."""
        files = (path for folder in (self.folder, *self.more) for path in folder.iterdir())
        found = (path for path in files if path.suffix in _SUFFIXES)
        return sorted(found, key=lambda path: ("_pkg" not in path.name, path.name))


@dataclass(frozen=True)
class Waves:
    """Waveforms to write: of the accelerators in RTL of a PE, from the cycle `first` to `last`. `file`: the start of
    the name of each file. The accelerator's name follows."""

    pe: int
    first: int
    last: int
    file: Path

    def of(self, accelerator: str) -> Path:
        """The file of an accelerator. Without work in these cycles there is no file."""
        return self.file.with_name(f"{self.file.name}-{accelerator}.vcd")


def rtl_libraries(
    board: Board, plugins: Mapping[str, Path], progress: Progress = SILENT, *, waves: bool = False
) -> dict[str, Path]:
    """The libraries of the board's accelerators in RTL, by accelerator, and of its network as `NETWORK`. An error if
    there is none. `plugins`: folders of Verilog from plug-ins. `waves`: libraries of accelerators with waveforms."""
    slots = [rtl_of(slot, board, plugins) for slot in board.accelerator if slot.base is not None]
    found = [replace(rtl, waves=waves) for rtl in slots if rtl] + [rtl for rtl in [network_of(board)] if rtl]
    if not found:
        raise NpukitError(f"board {board.name} has neither accelerator nor network in RTL", tries=[OTHER_WAY])
    return {rtl.name: library_of(rtl, progress) for rtl in found}


def rtl_of(slot: AcceleratorSlot, board: Board, plugins: Mapping[str, Path]) -> Rtl | None:
    """The RTL of an accelerator, or None. An error if the MAC array's RTL has other figures than the board."""
    if slot.name != _ARRAY:
        return Rtl(slot.name, plugins[slot.name], slot.name) if slot.name in plugins else None
    _check_figures(slot, board)
    size = sum(memory.size for memory in board.memory)
    return Rtl(_ARRAY, data_folder("rtl") / "array", _ARRAY, {"SRAM_BYTES": size})


def network_of(board: Board) -> Rtl | None:
    """The RTL of the board's network. None for another form of mesh, or other figures than the RTL's."""
    from npukit.board.board import load_board

    own, noc, mesh = load_board(_ARRAY_BOARD), board.noc, board.mesh
    size, most = (sum(memory.size for memory in one.memory) for one in (board, own))
    if noc is None or own.noc is None or noc.shared or mesh.chip_links != own.mesh.chip_links or size > most:
        return None
    figures, made = (each.model_dump(exclude=set(_FREE_OF_NETWORK)) for each in (noc, own.noc))
    if figures != made or len(board.memory) != 1:
        return None
    sizes = {f"CHIP_{name}": count for name, count in _grid(mesh.pes).items()}
    sizes |= {f"BOARD_CHIP_{name}": count for name, count in _grid(mesh.chips).items()}
    places = noc.border_packets if mesh.chips.columns * mesh.chips.rows > 1 else noc.buffer_packets
    memories = {"SRAM_BYTES": size, "DRAM_BYTES": noc.dram_bytes}
    first, *more = (data_folder("rtl") / name for name in _NETWORK_FOLDERS)
    parameters = {"ARRAY": 0, "INPUT_PLACES": places, **sizes, **memories}
    return Rtl(NETWORK, first, "pe_node", parameters, more=tuple(more), programs=_NETWORK_PROGRAMS)


def _grid(grid: Grid) -> dict[str, int]:
    return {"COLUMNS": grid.columns, "ROWS": grid.rows}


def _check_figures(slot: AcceleratorSlot, board: Board) -> None:
    from npukit.board.board import load_board

    own = load_board(_ARRAY_BOARD)
    made = own.accelerator_named(_ARRAY)
    figures = {} if made is None else made.figures
    differing = [name for name, value in figures.items() if slot.figures.get(name) != value]
    memory, most = (sum(each.size for each in one.memory) for one in (board, own))
    if differing:
        name = differing[0]
        told = f"{name} = {slot.figures.get(name)}, and the RTL has {figures[name]}"
        raise NpukitError(f"the {_ARRAY} of board {board.name} has {told}", tries=[OTHER_WAY])
    if memory > most:
        raise NpukitError(f"a PE of board {board.name} has more memory than the {most:,} bytes of the RTL's addresses")


def library_of(rtl: Rtl, progress: Progress = SILENT) -> Path:
    """The compiled library. Compiled again when a source, Verilator or the compiler changes."""
    verilator, compiler = _verilator(), _compiler()
    name = f"{rtl.name}{'-waves' if rtl.waves else ''}-{_digest(rtl, verilator, compiler)}.so"
    folders = [folder for folder in _folders() if _is_ours(folder)]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    if not folders:
        raise NpukitError(f"no folder to keep the RTL of {rtl.name} in: tried {', '.join(map(str, _folders()))}")
    progress.stage(f"compile the RTL of {rtl.name}, once: a minute")
    with tempfile.TemporaryDirectory(dir=folders[0]) as scratch:
        made = _compile(rtl, verilator, compiler, Path(scratch))
        os.replace(made, folders[0] / name)
    return folders[0] / name


def _verilator() -> str:
    program = find_program(VERILATOR)
    if program is None:
        raise NpukitError("--on rtl needs Verilator, which is not installed", tries=[GET_VERILATOR, OTHER_WAY])
    return program


def _compiler() -> str:
    program = next(filter(None, map(find_program, COMPILERS)), None)
    if program is None:
        raise NpukitError("--on rtl needs a C++ compiler, and none is installed", tries=[GET_COMPILER, OTHER_WAY])
    return program


def _digest(rtl: Rtl, verilator: str, compiler: str) -> str:
    versions = [_said([program, "--version"], Path(program).name) for program in (verilator, compiler)]
    words = (_VERILATE, _COMPILE, _DEFINES, rtl.extras, versions, rtl.top, rtl.parameters, rtl.programs)
    digest = hashlib.sha256(str(words).encode())
    for path in (*rtl.sources(), *sorted(data_folder("rtl").glob("device/*")), *_headers()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _headers() -> tuple[Path, ...]:
    """`device.h` and `network_device.h` of the built-in emulator."""
    package = find_spec("npukit_emulator")
    folders = list((package and package.submodule_search_locations) or [])
    if not folders:
        raise NpukitError("--on rtl needs the built-in emulator, which is not installed", tries=["npukit doctor"])
    return tuple(Path(folders[0]) / "core" / name for name in ("device.h", "network_device.h"))


def _compile(rtl: Rtl, verilator: str, compiler: str, folder: Path) -> Path:
    parameters = [f"-G{name}={value}" for name, value in rtl.parameters.items()]
    words, defines, runtimes = rtl.extras
    named = (*words, "--top-module", rtl.top, "--prefix", "Vdevice", "--Mdir", str(folder))
    _said([verilator, *_VERILATE, *named, *parameters, *map(str, rtl.sources())], f"Verilator on the RTL of {rtl.name}")
    runtime = Path(_said([verilator, "--getenv", "VERILATOR_ROOT"], VERILATOR).strip()) / "include"
    device, made = data_folder("rtl") / "device", folder / f"{rtl.name}.so"
    includes = (folder, runtime, runtime / "vltstd", device, _headers()[0].parent)
    words = [
        *(compiler, *_COMPILE, f"-DDEVICE={rtl.name}_device", *(f"-D{define}" for define in (*_DEFINES, *defines))),
        *(f"-I{include}" for include in includes),
        *map(str, (*(device / name for name in rtl.programs), *sorted(folder.glob("*.cpp")))),
        *(str(runtime / name) for name in (*_RUNTIME, *runtimes)),
        *("-o", str(made)),
    ]
    _said(words, f"the C++ compiler on the RTL of {rtl.name}")
    return made


def _said(command: list[str], subject: str) -> str:
    """The output of a program, or an error with the program's messages."""
    try:
        done = run(command, seconds=_SECONDS)
    except (OSError, TimeoutError) as error:
        raise NpukitError(f"{subject} fails: {error}", tries=[OTHER_WAY]) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip()[:_MOST_MESSAGE].splitlines()
        raise NpukitError(f"{subject} fails", facts=lines, tries=[GET_VERILATOR, OTHER_WAY])
    return done.stdout


def _folders() -> tuple[Path, ...]:
    """Folders for libraries, the preferred one first."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    user = os.getuid() if sys.platform != "win32" else 0
    return cache / "npukit" / "rtl", Path(tempfile.gettempdir()) / f"npukit-rtl-{user}"


def _is_ours(folder: Path) -> bool:
    """True if only this user can write to the folder. A library that others may replace is not loaded."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError:
        return False
    ours = sys.platform == "win32" or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    return ours and os.access(folder, os.W_OK)
