"""A board: the single source of every hardware number, read from `boards/NAME.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from npukit.board.contradictions import contradictions
from npukit.board.cores import CORES, CoreType
from npukit.board.lines import line_of
from npukit.board.noc import Packets, packets_of
from npukit.board.registers import Address, EmulatedRegisters
from npukit.data import board_folders, ways_to_install
from npukit.errors import DoesNotFit, NpukitError, nearest

CONTRADICTION = "contradiction"
UNKNOWN_KEY = "extra_forbidden"
"""Type of a validation error for an unknown key."""
LONGEST_SHOWN = 40

Word = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,63}$")]
"""Text for a name in C, in a linker script or in a file's path."""
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=400)]
"""Text for a comment."""

Holds = Literal["code", "constants", "activations", "stack"]
RunsOn = Literal["emulator", "renode", "qemu", "serial"]


Count = Annotated[int, Field(strict=True, ge=0, le=0xFFFF_FFFF)]
"""Bytes, cycles or links, within the firmware's 32 bits."""
Positive = Annotated[int, Field(strict=True, gt=0, le=0xFFFF_FFFF)]
Rate = Annotated[float, Field(strict=True, ge=0, le=0xFFFF, multiple_of=0.01)]
"""Bytes a cycle, whole or not: 2.5."""
Pin = Annotated[int, Field(strict=True, ge=0, lt=256)]
UsbId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}(:[0-9a-f]{4})?$")]
Side = Annotated[int, Field(strict=True, gt=0, le=1024)]
"""Columns or rows of a grid: the largest known boards have 48 chips of 8 x 19."""

Microwatts = Annotated[float, Field(strict=True, ge=0, le=1e9)]
"""Up to a kilowatt: more than any chip takes."""
Picojoules = Annotated[float, Field(strict=True, ge=0, le=1e9)]

_PATH = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*"
"""Path of a file that comes with a tool, relative and without `..`."""


def _known(cpu: str) -> str:
    if cpu not in CORES:
        raise ValueError(f"the cores are {', '.join(CORES)}")
    return cpu


CpuName = Annotated[str, AfterValidator(_known)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Core(_Part):
    """The processor of every PE, except in kinds with another."""

    cpu: CpuName
    clock_hz: int = Field(strict=True, gt=0, le=100_000_000_000)

    @property
    def type(self) -> CoreType:
        return CORES[self.cpu]


class Waits(_Part):
    """Wait cycles of a memory, and the cache in front of it.

    An access takes `cycles` longer, unless it hits one of the `lines` of `line_bytes` read last, in a cache of `ways`
    ways. With a prefetcher, code right after the line read last takes `next_cycles` longer. Loads have a cache of
    `data_lines`, or share the code's.
    """

    cycles: Positive
    next_cycles: Count | None = None
    line_bytes: Positive = 4
    lines: Positive = 1
    ways: Positive = 1
    data_lines: Positive | None = None

    @property
    def following(self) -> int:
        """Wait cycles for a line of code right after the line before."""
        return self.cycles if self.next_cycles is None else self.next_cycles

    @property
    def code_bytes(self) -> int:
        """Bytes of code in the cache."""
        return self.lines * self.line_bytes

    @property
    def data_bytes(self) -> int:
        return (self.data_lines or self.lines) * self.line_bytes


class Memory(_Part):
    """A memory region as the core sees it. `holds`: contents the linker may place there."""

    name: Word
    origin: int = Field(strict=True, ge=0, le=0xFFFF_FFFF)
    size: Positive
    holds: tuple[Holds, ...]
    waits: Waits | None = None

    @property
    def end(self) -> int:
        return self.origin + self.size

    def cycles_of(self, size: int, accesses: int) -> int:
        """Wait cycles of `accesses` accesses to `size` bytes: with a cache once a line, else each time."""
        if self.waits is None:
            return 0
        cached = self.waits.data_bytes > self.waits.line_bytes
        return self.waits.cycles * (min(accesses, -(-size // self.waits.line_bytes)) if cached else accesses)

    @property
    def cycles_per_byte(self) -> float:
        """Wait cycles for a byte of a line."""
        return self.waits.cycles / self.waits.line_bytes if self.waits else 0


class Grid(_Part):
    columns: Side
    rows: Side

    @property
    def count(self) -> int:
        return self.columns * self.rows


class Mesh(_Part):
    """Chips on the board, PEs on each chip, and known dead PEs and links.

    PEs are numbered row by row within a chip, chips row by row; PE numbers run over the whole board. On a hexagonal
    torus each chip has six neighbours, and rows and columns wrap around.
    """

    chips: Grid = Grid(columns=1, rows=1)
    chip_links: Literal["grid", "hexagonal torus"] = "grid"
    pes: Grid = Grid(columns=1, rows=1)
    dead_pes: tuple[int, ...] = ()
    dead_links: tuple[tuple[int, int], ...] = ()


class Timer(_Part):
    """The counter for time. `hz`: its rate, if other than the core's clock."""

    base: Address
    hz: Positive | None = None


class Uart(_Part):
    """The host link. `receive_bytes`: size of the receive buffer. `pins`: to send and to receive. `usb`: the USB
    adapter to the host, by vendor, or vendor and product."""

    base: Address
    baud: Positive
    pins: tuple[Pin, Pin] | None = None
    receive_bytes: Positive = 1
    usb: tuple[UsbId, ...] = ()


class Events(_Part):
    """Register for taking back the events of a core's sleep (`boards/pe-mesh.md`, section 1.2)."""

    base: Address


class Noc(_Part):
    """The network-on-chip and its DMA engine (`boards/pe-mesh.md`).

    With `shared`, PEs are cores that see each other's memories, one core's after the other's. Then the flags are at
    `base`, and the memory in place of DRAM is at `window`. Other boards have no `window`. Firmware and
    planner keep six of the flags.
    """

    base: Address
    flags: int = Field(strict=True, ge=7, le=256)
    shared: bool = False
    window: Address = 0
    port_bytes_per_cycle: Positive
    setup_cycles: Count
    packet_flits: Positive = 32
    buffer_packets: Positive = 2
    hop_cycles: Count = 2
    chip_hop_cycles: Count = 0
    chip_links_per_border: Count = 1
    chip_link_bytes_per_cycle: Rate = 1
    border_packets: Positive = 4
    dram_bytes: Count = 0
    dram_bytes_per_cycle: Positive = 1
    dram_latency_cycles: Count = 0
    dram_requests: Positive = 16
    dram_burst_bytes: Positive = 64
    dram_banks: Positive = 8
    dram_row_bytes: Positive = 2048
    dram_row_cycles: Count = 0
    dram_refresh_interval: Count = 0
    dram_refresh_cycles: Count = 0

    @property
    def chip_link_bytes_per_100_cycles(self) -> int:
        return round(100 * self.chip_link_bytes_per_cycle)

    def packets(self, rows: int, row_bytes: int, destinations: int = 1) -> Packets:
        """The packets of a copy. `destinations`: entries of a multicast's list; 1: no list."""
        return packets_of(self.port_bytes_per_cycle, self.packet_flits, rows, row_bytes, destinations)

    def border_cycles(self, flits: int) -> int:
        """Cycles for which a packet occupies the link of a chip border."""
        return -(-100 * flits * self.port_bytes_per_cycle // self.chip_link_bytes_per_100_cycles)


class Flash(_Part):
    """The root PE's flash and boot controller (`boards/pe-mesh.md`, section 7)."""

    base: Address
    window: Address
    page_bytes: Positive
    loader_bytes: Positive
    once_bytes: Positive
    slot_bytes: Positive
    erase_cycles: Count
    program_cycles: Count
    copy_cycles_per_word: Count

    @property
    def once_offset(self) -> int:
        return self.loader_bytes - self.once_bytes

    @property
    def state_offset(self) -> int:
        return self.loader_bytes

    def slot_offset(self, slot: int) -> int:
        return self.loader_bytes + 2 * self.page_bytes + slot * self.slot_bytes

    @property
    def bytes(self) -> int:
        return self.slot_offset(2)


class Programmer(_Part):
    """Tool for the flash of a board without npukit's loader, and the tool's name for the board. `openocd`: a
    configuration file of OpenOCD, `board/stm32f4discovery.cfg`. `pyocd`: a target type, `nrf52840`."""

    tool: Literal["openocd", "pyocd", "picotool", "esptool", "bossac"]
    target: str = Field(pattern=rf"^{_PATH}$")


class Scratchpad(_Part):
    """Memory of an accelerator, for loads and stores of any size."""

    base: Address
    bytes: Positive


class AcceleratorSlot(_Part):
    """An accelerator of the PEs: name of the plug-in, registers, figures.

    Without `base` the PEs do not have the accelerator: the core computes its calls with the plug-in's stand-in.
    `plugin`: folder or Python file of a plug-in if not installed; relative to the board file there, absolute once
    loaded. A stored board has none: users would run code without having seen it.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    base: Address | None = None
    register_bytes: Positive = 0x1000
    interrupt: Annotated[int, Field(strict=True, ge=0, lt=32)] | None = None
    """Number at the NVIC. None: the accelerator sets the event register alone."""
    scratchpad: Scratchpad | None = None
    plugin: Path | None = Field(default=None, exclude=True)
    figures: dict[Word, Annotated[int, Field(strict=True)]] = {}

    @field_validator("plugin")
    @classmethod
    def _beside_the_board_file(cls, plugin: Path | None, info: ValidationInfo) -> Path | None:
        folder = (info.context or {}).get("folder")
        return (folder / plugin).resolve() if plugin and folder else plugin


class PeKind(_Part):
    """PEs that differ from PEs without a kind. `accelerators`: names of their accelerators. `memory_bytes`: a smaller
    memory. `cpu`: another core at the same clock."""

    pes: tuple[int | tuple[int, int], ...]
    """PE numbers, and ranges as first and last number."""
    cpu: CpuName | None = None
    accelerators: tuple[str, ...] | None = None
    memory_bytes: Positive | None = None

    @cached_property
    def numbers(self) -> frozenset[int]:
        spans = ((each, each) if isinstance(each, int) else each for each in self.pes)
        return frozenset(pe for first, last in spans for pe in range(first, last + 1))

    def lacks(self, accelerator: str) -> bool:
        return self.accelerators is not None and accelerator not in self.accelerators


class EnergyLevel(_Part):
    """A supply voltage with its clock: the power of a sleeping PE beyond a PE switched off, and the energy of work."""

    volts: float = Field(strict=True, gt=0, le=100)
    clock_hz: int = Field(strict=True, gt=0, le=100_000_000_000)
    pe_asleep_uw: Microwatts
    pj_per_core_cycle: Picojoules
    pj_per_mac: Picojoules


class Energy(_Part):
    """Power of a board by supply voltage. `pe_off_uw`: a PE's share of the rest of the chip.

    `pj_per_mac` and `pj_per_core_cycle` include SRAM accesses of array and core; `pj_per_sram_byte` is for SRAM
    accesses of messages. `dram_idle_uw`: power of a chip's DRAM with data.
    """

    pe_off_uw: Microwatts
    pj_per_sram_byte: Picojoules = 0
    pj_per_byte_hop: Picojoules = 0
    pj_per_dram_byte: Picojoules = 0
    dram_idle_uw: Microwatts = 0
    uncertainty_percent: float = Field(strict=True, gt=0, le=100)
    traffic_uncertainty_percent: float = Field(strict=True, default=0, ge=0, le=1000)
    level: tuple[EnergyLevel, ...] = Field(min_length=1, max_length=16)


class Qemu(_Part):
    machine: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    cpu: str = Field(default="", pattern=r"^[a-z0-9=,._-]*$")
    """The core, if other than the machine's own: `rv32,v=true,vlen=128`."""
    instructions_per_tick: float = Field(gt=0, le=1_000_000)


class Renode(_Part):
    """A stock board in Renode: a platform of Renode, and the platform's names for the link's UART and the timer.
    Without `timer`, npukit adds the core's cycle counter, which Renode's platforms lack."""

    platform: str = Field(pattern=rf"^{_PATH}$")
    uart: str = Field(pattern=r"^\w+$")
    timer: str | None = Field(None, pattern=r"^\w+$")


class Board(_Part):
    """A board file. Frozen: the single source for everything that must agree on the hardware.

    `hal`: name of a file of npukit in `firmware/hal/`; or, in a board file, a C file beside it, which becomes
    `hal_file`. A stored board has no `hal_file`.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    summary: Line
    hal: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    hal_file: Path | None = Field(default=None, exclude=True)
    runs_on: tuple[RunsOn, ...]
    core: Core
    memory: tuple[Memory, ...]
    mesh: Mesh = Mesh()
    timer: Timer
    events: Events | None = None
    noc: Noc | None = None
    uart: Uart
    flash: Flash | None = None
    programmer: Programmer | None = None
    accelerator: tuple[AcceleratorSlot, ...] = ()
    kind: tuple[PeKind, ...] = ()
    qemu: Qemu | None = None
    energy: Energy | None = None
    renode: Renode | None = None
    emulator: EmulatedRegisters | None = None
    boot_bytes: int = Field(default=0, ge=0, le=0x1_0000)
    """Bytes before the program in its memory, for the chip's own use: section `.boot` of the board's C."""

    @model_validator(mode="before")
    @classmethod
    def _own_hal(cls, tables: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        folder, hal = (info.context or {}).get("folder"), tables.get("hal")
        if folder and isinstance(hal, str) and hal.endswith(".c"):
            return {**tables, "hal": Path(hal).stem, "hal_file": (folder / hal).resolve()}
        return {key: value for key, value in tables.items() if key != "hal_file"}

    @model_validator(mode="after")
    def _numbers_agree(self) -> Board:
        if fault := next(contradictions(self), None):
            where, fact = fault
            raise PydanticCustomError(CONTRADICTION, "{fault}", {"fault": fact, "where": where})
        return self

    @property
    def pe_count(self) -> int:
        return self.mesh.chips.count * self.mesh.pes.count

    @property
    def shares_memory(self) -> bool:
        """True if the PEs are cores that see each other's memories."""
        return self.noc is not None and self.noc.shared

    @property
    def stock(self) -> bool:
        """True for a chip as sold: one core, or cores that see each other's memories."""
        return self.noc is None or self.noc.shared

    def seen_by(self, pe: int) -> Board:
        """The board seen by a PE: core and memory of the PE's kind; in a shared address space, the PE's part."""
        core, size = self.core.model_copy(update={"cpu": self.cpu_of(pe)}), self.memory_bytes_of(pe)
        parts = self.memory
        if size:
            parts = (self.memory[0].model_copy(update={"size": size}),)
        elif self.shares_memory:
            parts = tuple(part.model_copy(update={"origin": part.origin + pe * part.size}) for part in self.memory)
        same = parts == self.memory and core == self.core
        return self if same else self.model_copy(update={"core": core, "memory": parts})

    def cpu_of(self, pe: int) -> str:
        """Name of a PE's core."""
        return next((kind.cpu for kind in self.kind if kind.cpu and pe in kind.numbers), self.core.cpu)

    def is_on_roots_chip(self, pe: int) -> bool:
        """True if a PE is on the chip with the DRAM that the host fills."""
        return pe // self.mesh.pes.count == self.root_pe // self.mesh.pes.count

    @property
    def cpus(self) -> tuple[str, ...]:
        """Names of all PEs' cores, each once."""
        return tuple(dict.fromkeys((self.core.cpu, *(kind.cpu for kind in self.kind if kind.cpu))))

    def memory_bytes_of(self, pe: int) -> int | None:
        """Memory bytes of a PE whose kind has less than others; None for other PEs."""
        return next((kind.memory_bytes for kind in self.kind if kind.memory_bytes and pe in kind.numbers), None)

    @property
    def root_pe(self) -> int:
        """The PE with the host link: the first PE that is not dead."""
        return next(pe for pe in range(self.pe_count) if pe not in self.mesh.dead_pes)

    @cached_property
    def lacking(self) -> Mapping[str, frozenset[int]]:
        """PEs without an accelerator, by the accelerator's name; accelerators of all PEs are left out."""
        named = {slot.name for slot in self.accelerator if slot.base is not None}
        without = {name: [kind.numbers for kind in self.kind if kind.lacks(name)] for name in named}
        return {name: frozenset[int]().union(*numbers) for name, numbers in without.items() if numbers}

    @property
    def as_stored(self) -> Board:
        """The board without the paths of plug-ins and of its own C."""
        slots = tuple(slot.model_copy(update={"plugin": None}) for slot in self.accelerator)
        return self.model_copy(update={"accelerator": slots, "hal_file": None})

    def with_less(self, memory: str, size: int) -> Board:
        """The board with `size` bytes less in the memory of this name."""
        left = [m.model_copy(update={"size": m.size - size}) if m.name == memory else m for m in self.memory]
        return self.model_copy(update={"memory": tuple(left)})

    def memory_for(self, kind: Holds) -> Memory:
        """The memory for code, constants or the stack; for activations, the fastest bank."""
        return self.banks[0] if kind == "activations" else next(m for m in self.memory if kind in m.holds)

    @property
    def banks(self) -> tuple[Memory, ...]:
        """Memories for activations, the fastest first; equally fast ones in the order of the file."""
        banks = (memory for memory in self.memory if "activations" in memory.holds)
        return tuple(sorted(banks, key=lambda bank: bank.cycles_per_byte))

    def accelerator_named(self, name: str) -> AcceleratorSlot | None:
        return next((a for a in self.accelerator if a.name == name), None)


_FILES: dict[str, Path] = {}
"""Board files read by this process, by name of the board."""


def place_of_figure(board: Board, slot: AcceleratorSlot, figure: str) -> str:
    """File and line of an accelerator's figure, or the board's name if the board comes from no file."""
    path = _FILES.get(board.name)
    return _place(path, ("accelerator", board.accelerator.index(slot), "figures", figure)) if path else board.name


def _place(path: Path, where: Sequence[str | int]) -> str:
    line = line_of(path.read_text(encoding="utf-8"), where)
    return f"{path}, line {line}" if line else str(path)


def load_board(name: str) -> Board:
    """Load a board by name, or from the path of a TOML file."""
    places = [Path(name)] if name.endswith(".toml") else [folder / f"{name}.toml" for folder in board_folders()]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        known = board_names()
        tries = [*nearest(name, known), f"one of: {', '.join(known)}", "npukit boards"]
        tries += ["the path of your own board file, ending in .toml"]
        raise NpukitError(f"board {name} is not known", tries=[*ways_to_install(name), *tries])
    try:
        board = Board.model_validate(_tables(path), context={"folder": path.parent})
        _FILES[board.name] = path
        return board
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NpukitError(f"board file {path} is not TOML: {error}") from error
    except ValidationError as error:
        raise _invalid(path, error) from error


def _tables(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Tables of a board file. Missing tables come from the file in `like`; an empty table removes an inherited table.
    `above`: the files that inherit from this file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    like = tables.pop("like", None)
    if like is None:
        return tables
    name = f"{Path(str(like)).name}.toml"
    places = (folder / name for folder in chain([path.parent], board_folders()))
    above = (*above, path)
    other = next((each for each in places if each.is_file() and not any(map(each.samefile, above))), None)
    if other is None:
        tries = [f"put {name} beside it", f"one of: {', '.join(board_names())}"]
        raise NpukitError(f"board file {path} is like {like}, which is not there", tries=tries)
    both = {**_tables(other, above), **tables}
    return {name: value for name, value in both.items() if value != {}}


def board_names() -> list[str]:
    """Names of the boards of npukit and of installed plug-ins."""
    return sorted({path.stem for folder in board_folders() for path in folder.glob("*.toml")})


def known_boards() -> Iterator[Board]:
    """Every board of npukit and of installed plug-ins, by name."""
    yield from map(load_board, board_names())


def _invalid(path: Path, error: ValidationError) -> NpukitError:
    """The error for wrong fields of a board file: first unknown keys, perhaps misspelt, then missing keys."""
    faults = error.errors()
    first = faults[0]
    if first["type"] == CONTRADICTION:
        place = _place(path, first.get("ctx", {})["where"])
        message = f"board file {place} contradicts itself: {first['msg']}"
        return DoesNotFit(message, tries=["docs/board-file.md", "npukit boards"])
    fault = next((fault for fault in faults if fault["type"] == UNKNOWN_KEY), first)
    place, where = _place(path, fault["loc"]), ".".join(map(str, fault["loc"])) or "the file"
    if fault["type"] == UNKNOWN_KEY:
        known = {key for part in _Part.__subclasses__() for key in part.model_fields}
        tries = [*nearest(str(fault["loc"][-1]), known), "docs/board-file.md"]
        return NpukitError(f"board file {place} has an unknown key: {where}", tries=tries)
    given = fault["input"]
    found = f", not {given}" if isinstance(given, int | float | str) and len(str(given)) <= LONGEST_SHOWN else ""
    return NpukitError(f"board file {place} is wrong: {where}: {fault['msg']}{found}")
