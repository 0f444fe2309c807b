"""The C files of one program, from the templates in `templates/net/`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from npukit import __version__
from npukit.codegen.constants import Array, Fields, Record
from npukit.codegen.frame import frame_as_c, frame_function
from npukit.codegen.kernels import C_TYPES, helpers_as_c
from npukit.codegen.names import comment_text
from npukit.codegen.places import Places
from npukit.codegen.program import Program
from npukit.codegen.tensors import TensorRow, layer_tiles
from npukit.data import data_folder

NETWORK = "net.c"
FILES = ("constants.c", "fixed_point.h", "kernels.c", "kernels.h", "memory.h", NETWORK)
ROUTINES = "routines.S"
NAMES = "names.h"
LINE = 116


@dataclass(frozen=True)
class Titles:
    """What the program says of itself, as C."""

    model: str
    board: str
    build_id: bytes
    link_bytes: int

    @property
    def sign(self) -> str:
        """A number by which programs of one build know each other."""
        return f"0x{int.from_bytes(self.build_id[:4], 'little') | 1:08X}"


@dataclass(frozen=True)
class Ends:
    """What the host writes and reads, on the PE it talks to, and the PEs of the network."""

    inputs: Sequence[TensorRow]
    outputs: Sequence[TensorRow]
    pes: Sequence[PeRow]


@dataclass(frozen=True)
class PeRow:
    """`struct net_pe`."""

    pe: int
    control: str


def render(program: Program, titles: Titles, ends: Ends | None) -> dict[str, str]:
    """Every file by its name."""
    frame = frame_as_c(frame_function(program.steps), _places(program).address)
    values = {"titles": titles, "ends": ends, "layers": layer_tiles(program), "frame": frame, "library": None}
    return _files(program, FILES, values)


def render_library(program: Program, prefix: str) -> dict[str, str]:
    """The files but for the network's own, every name that a linker sees beginning with `prefix`."""
    names = [function.name for function in program.kernels] + [routine.name for routine in program.routines]
    linked = [*names, *(["net_constants"] if program.constants.members else []), "net_activations"]
    library = {"prefix": prefix, "names": linked}
    return _files(program, (*(name for name in FILES if name != NETWORK), NAMES), {"library": library})


def library_frame(program: Program) -> str:
    """The statements of a frame that nobody observes."""
    return frame_as_c(frame_function(program.steps, observable=False), _places(program).address)


def _files(program: Program, names: Sequence[str], values: dict[str, object]) -> dict[str, str]:
    known = {
        "version": __version__,
        "program": program,
        "members": list(_members(program, _places(program))),
        "helpers": helpers_as_c(),
        "buffers": list(_buffers(program)),
    }
    chosen = (*names, ROUTINES) if program.routines else names
    return {name: _environment().get_template(f"{name}.j2").render(**known, **values) for name in chosen}


def _places(program: Program) -> Places:
    return Places(program.constants.homes, program.constants.single_structs)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(data_folder("templates") / "net"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["comment"] = comment_text
    return environment


@dataclass(frozen=True)
class _Member:
    """A member of the constants: its declaration, its initialiser, what it is."""

    name: str
    declaration: str
    align: int
    value: str
    comment: str


def _members(program: Program, places: Places) -> Iterator[_Member]:
    for member in program.constants.members:
        yield _array(member) if isinstance(member, Array) else _record(member, places)


def _record(record: Record, places: Places) -> _Member:
    declaration = f"struct {record.struct} {record.symbol}{f'[{len(record.rows)}]' if record.listed else ''}"
    value = _list(record.rows, places) if record.listed else _struct(record.rows[0], places)
    return _Member(record.symbol, declaration, record.align, value, record.comment)


def _struct(fields: Fields, places: Places) -> str:
    return "{\n" + "".join(f"    .{name} = {places.field(value)},\n" for name, value in fields) + "}"


def _list(rows: Sequence[Fields], places: Places) -> str:
    lines = (", ".join(f".{name} = {places.field(value)}" for name, value in row) for row in rows)
    return "{\n" + "".join(f"    {{ {line} }},\n" for line in lines) + "}"


def _array(member: Array) -> _Member:
    values = member.array.values
    kind = C_TYPES[str(values.dtype)]
    others = [user for user in member.users if user != member.symbol]
    comment = member.array.comment + (f"; also {', '.join(others)}" if others else "")
    return _Member(member.symbol, f"{kind} {member.symbol}[{values.size}]", member.align, _numbers(values), comment)


def _numbers(values: np.ndarray) -> str:
    floating = values.dtype.kind == "f"
    text = ", ".join(f"{float(v).hex()}f" if floating else str(int(v)) for v in values.ravel())
    return "{\n" + textwrap.fill(text, LINE, initial_indent="    ", subsequent_indent="    ") + ",\n}"


@dataclass(frozen=True)
class _Place:
    """A buffer's line in the memory map."""

    symbol: str
    offset: int
    comment: str


def _buffers(program: Program) -> Iterator[_Place]:
    for buffer in program.arena.buffers.values():
        what = f"{buffer.tensor} {buffer.box}" if buffer.tensor else buffer.name
        comment = comment_text(f"{what}, {buffer.bytes} bytes, steps {buffer.first} to {buffer.last}")
        yield _Place(program.arena.place(buffer), buffer.offset, comment)
