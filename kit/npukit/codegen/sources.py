"""The output of the code generator: the C of one program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from npukit.codegen.streamed import DramPiece


@dataclass(frozen=True)
class Spot:
    """A place in a section of the PE itself (`constants`, `activations`, `own`), or in the activations of `pe`."""

    section: Literal["constants", "activations", "own"]
    offset: int
    pe: int | None = None


@dataclass(frozen=True)
class Row:
    """The values of a C struct's members, in their order in the data. Without a struct: 32-bit words."""

    offset: int
    struct: str
    names: tuple[str, ...]
    values: tuple[int | str | Spot, ...]


@dataclass(frozen=True)
class PeData:
    """One PE's own data by offset: bytes, and structs whose layout the compiler decides."""

    pe: int
    arrays: tuple[tuple[int, bytes], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class OwnData:
    """The own data of each PE of a role. `bytes`: reserved on every PE. `headers`: declare the structs. `pages`: if
    orders lie in DRAM, the pages of each PE, with their total bytes."""

    bytes: int = 0
    pes: tuple[PeData, ...] = ()
    headers: tuple[str, ...] = ()
    pages: tuple[tuple[int, PeData], ...] = ()

    def rows(self) -> Iterator[Row]:
        for pe in (*self.pes, *(data for _, data in self.pages)):
            yield from pe.rows


@dataclass(frozen=True)
class Sources:
    """The program of one role: the files of `project/net/`, by name, and the additional firmware files.

    If several chips do the same, `pes` has the PEs of all chips, chip by chip, and `own` the data of one chip's PEs.

    `constant_bytes` and `activation_bytes` are the exact sizes of the sections `.constants` and `.activations`.
    `bank_bytes` are the sizes of activations in banks behind the first.
    """

    role: int
    pes: tuple[int, ...]
    files: Mapping[str, str]
    drivers: tuple[Path, ...]
    constant_bytes: int
    activation_bytes: int
    bank_bytes: tuple[int, ...] = ()
    wrappers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The functions that plug-ins' drivers must define, each with the name of an op that calls it, and the plug-in."""
    streamed: tuple[DramPiece, ...] = ()
    """Constants in DRAM of the program's tiles. PEs may share pieces."""
    foreign_pes: tuple[int, ...] = ()
    """Other PEs whose activations the C refers to by name."""
    own: OwnData = OwnData()
    """The own data of the PEs, which is not C."""
    spans: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The number of the plan's steps in each step of the frame, in order, by PE, if the program traces."""
