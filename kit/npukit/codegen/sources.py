"""The result of the code generator: the C of one program."""

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
    """The values of a C struct's members, as they follow each other in the data; without a struct, 32-bit words."""

    offset: int
    struct: str
    names: tuple[str, ...]
    values: tuple[int | str | Spot, ...]


@dataclass(frozen=True)
class PeData:
    """One PE's own data: bytes, and structs whose layout is the compiler's affair, by their offsets."""

    pe: int
    arrays: tuple[tuple[int, bytes], ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class OwnData:
    """The data of each PE of a role; `bytes` are reserved on all. `headers` declare the structs.

    Where orders lie in DRAM, `pages` are those of each PE, with the bytes of all of them.
    """

    bytes: int = 0
    pes: tuple[PeData, ...] = ()
    headers: tuple[str, ...] = ()
    pages: tuple[tuple[int, PeData], ...] = ()

    def rows(self) -> Iterator[Row]:
        for pe in (*self.pes, *(data for _, data in self.pages)):
            yield from pe.rows


@dataclass(frozen=True)
class Sources:
    """One role's program: the files of `project/net/`, by name, and the firmware files it needs besides.

    Where chips do the same, `pes` has all of them, chip by chip, and `own` the data of those of one chip.

    `constant_bytes` and `activation_bytes` are the sizes of the sections `.constants` and `.activations`, to the byte,
    `bank_bytes` those of activations in banks behind the first.
    """

    role: int
    pes: tuple[int, ...]
    files: Mapping[str, str]
    drivers: tuple[Path, ...]
    constant_bytes: int
    activation_bytes: int
    bank_bytes: tuple[int, ...] = ()
    wrappers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The functions that plug-ins' drivers must have, each with an op that calls it and the plug-in."""
    streamed: tuple[DramPiece, ...] = ()
    """Constants of its tiles that lie in DRAM; PEs may have the same."""
    foreign_pes: tuple[int, ...] = ()
    """Other PEs whose activations the C refers to by name."""
    own: OwnData = OwnData()
    """The own data of the PEs: it is no C."""
    spans: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The number of the plan's steps in each step of the frame, in order, by PE, if it traces."""
