"""The source files of each image, listed from the rendered project: the same files as in the Makefile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from npukit.board.board import Board
from npukit.board.cores import CORES
from npukit.codegen.sources import OwnData, Sources
from npukit.project.layout import activation_address

Tuning = Literal["speed", "size", "libc"]

_SOURCE_SUFFIXES = (".c", ".S", ".s")


@dataclass(frozen=True)
class Unit:
    """A file to compile for a core. Paths are relative to the project's folder."""

    source: PurePosixPath
    tuning: Tuning
    cpu: str

    @property
    def object(self) -> PurePosixPath:
        return self.cpu / self.source.with_suffix(".o")


@dataclass(frozen=True)
class ProjectRole:
    """One program of the project: its PEs, their core, the folder of generated C, the linker script. `serves_host`: the
    PEs include the one that answers the host for the network."""

    number: int
    pes: tuple[int, ...]
    cpu: str
    serves_host: bool
    net: PurePosixPath
    link_script: PurePosixPath
    image: str
    constant_bytes: int
    activation_bytes: int
    bank_bytes: tuple[int, ...]
    foreign_pes: tuple[int, ...]
    own: OwnData

    @property
    def own_file(self) -> PurePosixPath:
        """The file of the PEs' own data, if there is any."""
        return self.net.parent / "own.bin"


@dataclass(frozen=True)
class Relay:
    """Another network, as known to the PE with the link: the answering PE, and the mailbox's address."""

    pe: int
    mailbox: int


@dataclass(frozen=True)
class Coresident:
    """A network's part in a board shared by several networks.

    `network_pe`: the PE that answers the host for this network. The PE with the link answers itself or forwards
    requests. `relays`: the other networks, for the PE with the link.
    """

    network_pe: int
    relays: tuple[Relay, ...] = ()


@dataclass(frozen=True)
class Project:
    """A rendered C project."""

    folder: Path
    board: Board
    roles: tuple[ProjectRole, ...]

    @property
    def cpus(self) -> tuple[str, ...]:
        """The distinct core types of the programs."""
        return tuple(dict.fromkeys(role.cpu for role in self.roles))

    def firmware_units(self, cpu: str) -> list[Unit]:
        """The units of the firmware for a core."""
        sources = self._sources(PurePosixPath("firmware"))
        return [Unit(path, _TUNINGS.get(path.parts[1], "size"), cpu) for path in sources if _is_for(cpu, path)]

    def net_units(self, role: ProjectRole) -> list[Unit]:
        """The units of the role's generated code."""
        return [Unit(source, "speed", role.cpu) for source in self._sources(role.net)]

    def image_units(self, role: ProjectRole) -> list[Unit]:
        """The units linked into the role's image: the firmware with one of the mains, and the generated code."""
        firmware = self.firmware_units(role.cpu)
        mains = {unit.source for unit in firmware if unit.source.name.startswith("main")}
        others = {_MAIN_WORKER} if role.serves_host else mains - {_MAIN_WORKER}
        return [*(unit for unit in firmware if unit.source not in others), *self.net_units(role)]

    @cached_property
    def activations(self) -> dict[int, int]:
        """The start address of each PE's activations."""
        places = ((pe, role.activation_bytes) for role in self.roles for pe in role.pes)
        return {pe: activation_address(self.board.seen_by(pe), bytes_of_it) for pe, bytes_of_it in places}

    def include_folders(self, cpu: str) -> list[PurePosixPath]:
        """The folders of the firmware with headers for a core, and the board's folder."""
        headers = (self.folder / "firmware").rglob("*.h")
        paths = (PurePosixPath(path.relative_to(self.folder).as_posix()) for path in headers)
        return [PurePosixPath("board"), *sorted({path.parent for path in paths if _is_for(cpu, path)})]

    def _sources(self, folder: PurePosixPath) -> Iterator[PurePosixPath]:
        for path in sorted((self.folder / folder).rglob("*")):
            if path.suffix in _SOURCE_SUFFIXES:
                yield PurePosixPath(path.relative_to(self.folder).as_posix())


_MAIN_WORKER = PurePosixPath("firmware/main_worker.c")


def roles_of(sources: Sequence[Sources], board: Board, network_pe: int) -> tuple[ProjectRole, ...]:
    """The roles by number. A single role's files are in the project's top folder."""
    alone = len(sources) == 1
    return tuple(_role(each, board, alone, network_pe) for each in sorted(sources, key=lambda each: each.role))


def _role(sources: Sources, board: Board, alone: bool, network_pe: int) -> ProjectRole:
    number = sources.role
    return ProjectRole(
        number=number,
        pes=sources.pes,
        cpu=board.cpu_of(sources.pes[0]),
        serves_host=network_pe in sources.pes,
        net=PurePosixPath("net") if alone else PurePosixPath(f"roles/{number}/net"),
        link_script=PurePosixPath("board/link.ld" if alone else f"board/link-{number}.ld"),
        image="image" if alone else f"image-{number}",
        constant_bytes=sources.constant_bytes,
        activation_bytes=sources.activation_bytes,
        bank_bytes=sources.bank_bytes,
        foreign_pes=sources.foreign_pes,
        own=sources.own,
    )


def _is_for(cpu: str, path: PurePosixPath) -> bool:
    """False for firmware files of another architecture."""
    own = CORES[cpu].architecture.firmware
    return path.parts[1] not in {core.architecture.firmware for core in CORES.values()} - {own}


_TUNINGS: Mapping[str, Tuning] = {"libc": "libc", "mac_array": "speed", "engines": "speed", "libm": "speed"}
"""Folders of the firmware with layers, and the C library. The rest of the firmware is compiled for size."""
