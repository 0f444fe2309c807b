"""The C files of one program, from the templates in `templates/net/`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, chain, pairwise

import numpy as np
from jinja2 import Environment

from npukit import __version__
from npukit.accel.core_filters import PRESCALED, VECTOR_LANES
from npukit.accel.interface import Address
from npukit.codegen.constants import Absolute, Array, Callee, Foreign, Number, Record, Value
from npukit.codegen.frame import FrameStep, TableStep, frame_as_c, frame_function, renamed, with_purposes
from npukit.codegen.names import c_float, comment_text, foreign_arena, ranges
from npukit.codegen.roles import LAYER_COUNT, Role, foreign_pes
from npukit.codegen.states import STATES
from npukit.codegen.tensors import TensorRow, layer_tiles
from npukit.codegen.tir.kernels import CFunction, TirKernel, helpers_as_c, kernel, kernels_as_c
from npukit.data import data_folder
from npukit.errors import DoesNotFit
from npukit.net.c_code.function import C_TYPES, math_functions
from npukit.templates import templates_in

NETWORK = "net.c"
FILES = ("constants.c", "fixed_point.h", "kernels.c", "kernels.h", "memory.h", NETWORK)
ROUTINES = "routines.S"
TIR = "net.tir"
"""The TIR of kernels and frame."""
NAMES = "names.h"
TABLE_HEADER = "net_table.h"
TABLE_LOOP = "net_table.c"
"""The loop over the steps of a long program: firmware that each long program compiles with its own header."""
_LINE = 116
_REGISTERS = 4
"""Arguments of a function in registers, on the core with the fewest."""
_OWN = "net_own"
"""The C name of a PE's own data."""


@dataclass(frozen=True)
class Titles:
    """The program's description of itself, as C."""

    model: str
    board: str
    build_id: bytes
    link_bytes: int
    traces: bool = False
    """The program records when each step of a frame began."""

    @property
    def sign(self) -> str:
        """A number by which programs of the same build recognise each other."""
        return f"0x{int.from_bytes(self.build_id[:4], 'little') | 1:08X}"


@dataclass(frozen=True)
class HostTensors:
    """The tensors that the host writes and reads on the root, and the PEs of the network."""

    inputs: Sequence[TensorRow]
    outputs: Sequence[TensorRow]
    pes: Sequence[PeRow]
    frames: int = 1
    """Frames of a run on each chip."""
    chips: Sequence[ChipRow] = ()
    remembers: bool = False
    """The network has states."""


@dataclass(frozen=True)
class PeRow:
    """`struct net_pe`."""

    pe: int
    control: str


@dataclass(frozen=True)
class ChipRow:
    """`struct net_chip`."""

    pe: int
    dram: int


def render(
    role: Role, titles: Titles, ends: HostTensors | None, banks: Sequence[tuple[int, int]] = ()
) -> dict[str, str]:
    """All files by name. `banks`: offset of the first byte, and size in bytes, of each bank behind the first."""
    known = {pe.pe for pe in ends.pes} if ends else set()
    foreign = (foreign_pes(role.constants.members) | known) - {role.first.pe}
    values = {
        "titles": titles,
        "ends": ends,
        "layers": role.layers,
        "layer_names": [layer.name for layer in layer_tiles(role.first)],
        **_run_of(role, traces=titles.traces),
        "counts_layers": any(word.name == LAYER_COUNT for word in role.words),
        "events": _events(role) if titles.traces else 0,
        "foreign_arenas": [foreign_arena(pe) for pe in sorted(foreign)],
        "library": None,
        "banks": banks,
    }
    tir = {TIR: tir_of(role, traces=titles.traces)}
    if values["first_step"] is None:
        return {**_files(role, FILES, values), **tir}
    loop = (data_folder("firmware") / "table" / TABLE_LOOP).read_text(encoding="utf-8")
    return {**_files(role, (*FILES, TABLE_HEADER), values), **tir, TABLE_LOOP: loop}


_FEWEST_EVENTS = 64
_MOST_STEPS = 0xFFFF


def _events(role: Role) -> int:
    """The number of events that a PE keeps: a power of two, enough for two frames."""
    steps = max(len(program.spans) for program in role.programs)
    if steps > _MOST_STEPS:
        raise DoesNotFit(f"a frame of {steps} steps cannot be traced: events count up to {_MOST_STEPS}")
    return max(_FEWEST_EVENTS, 1 << (2 * steps + 1).bit_length())


def _run_of(role: Role, *, traces: bool) -> dict[str, object]:
    """The parts of `net_run`: the statements of a frame, or a table of its steps and called functions."""
    first = role.steps[0] if role.steps else None
    if not isinstance(first, TableStep):
        return {"first_step": None, "frame": _frame(role.steps, role, observable=True, traces=traces)}
    records = chain.from_iterable(program.records for program in role.programs)
    core = [(number, callee) for number, callee in enumerate(role.functions) if not callee.checked]
    crowded = {callee: f"call_{callee.name}" for _, callee in core if len(callee.pointers) > _REGISTERS}
    core_calls = [(number, f"{crowded[each]}(with)" if each in crowded else _call(each)) for number, each in core]
    return {
        "first_step": places_of(role).address(first.symbol),
        "core_calls": [(number, f"{call};\nbreak;") for number, call in core_calls],
        "crowded": [(name, _call(callee)) for callee, name in crowded.items()],
        "driver_calls": [(n, _driver_call(callee)) for n, callee in enumerate(role.functions) if callee.checked],
        "form": next((part.engine.commands for part in role.parts if part.chained), None),
        "paged": bool(role.first.pages),
        "restores": any(record.symbol == STATES for record in records),
        "waits": sorted({wait for part in role.parts if (wait := part.engine.abilities.wait)}),
    }


def _call(callee: Callee) -> str:
    """The C of a call whose arguments come from a table."""
    kinds = ["as_address" if pointer else "as_number" for pointer in callee.pointers]
    return f"{callee.name}({', '.join(f'{kind}(with[{place}])' for place, kind in enumerate(kinds))})"


def _driver_call(callee: Callee) -> str:
    if callee.wait is None:
        return f"return {_call(callee)};"
    return f"{{\n    const int32_t status = {_call(callee)};\n    return status != 0 ? status : {callee.wait}();\n}}"


def render_library(role: Role, prefix: str) -> dict[str, str]:
    """The files except the network's own. Every name visible to a linker begins with `prefix`."""
    names = [function.name for function in _kernels(role)[0]] + [routine.name for routine in role.routines]
    linked = [*names, *(["net_constants"] if role.constants.members else []), "net_memory"]
    library = {"prefix": prefix, "names": linked, "one_instance": has_one_instance(role)}
    values = {"library": library, "foreign_arenas": [], "banks": ()}
    return _files(role, (*(name for name in FILES if name != NETWORK), NAMES), values)


def has_one_instance(role: Role) -> bool:
    """True if constants point into the arena, as commands do, which fixes the arena's address."""
    return any(part.chained for part in role.parts)


def library_frame(role: Role) -> str:
    """The statements of a frame without observation, with an event for each step."""
    return _frame(role.steps, role, observable=False, traces=True)


def tir_of(role: Role, *, traces: bool) -> str:
    """The TIR of a program: each kernel once, and the frame with `call_extern` of kernels and accelerators."""
    kernels = _tir_kernels(role)
    functions, names = kernels_as_c(kernels)
    first = {each.name for each in functions}
    made = [each.function for each in kernels if each.function and each.tile.name in first]
    if not isinstance(next(iter(role.steps), None), TableStep):
        steps = [renamed(step, names) for step in role.steps]
        made.append(frame_function(steps, traces=traces))
    return "\n".join(map(str, made))


def _frame(steps: Sequence[FrameStep], role: Role, *, observable: bool, traces: bool = False) -> str:
    _, names = _kernels(role)
    function = frame_function([renamed(step, names) for step in steps], observable=observable, traces=traces)
    numbers = {word.name: f"{_OWN}.{word.name}" for word in role.words if not word.is_address}
    which = f"on PE {role.first.pe}: " if len(role.pes) > 1 else ""
    return with_purposes(frame_as_c(function, places_of(role).address, numbers), steps, which)


def _kernels(role: Role) -> tuple[list[CFunction], dict[str, str]]:
    """The kernels made from TIR, and the name of the kernel that computes each tile, by the tile's name."""
    return kernels_as_c(_tir_kernels(role))


def _tir_kernels(role: Role) -> list[TirKernel]:
    return [kernel(part.tile, part.lowered.constants) for part in role.parts if part.from_tir]


def _files(role: Role, names: Sequence[str], values: dict[str, object]) -> dict[str, str]:
    kernels, places = _kernels(role)[0], places_of(role)
    known = {
        "version": __version__,
        "program": role.first,
        "role": role,
        "kernels": kernels,
        "calls_math": any(math_functions(kernel.body) for kernel in kernels),
        "uses_helium": any("vldrb" in routine.assembly for routine in role.routines),
        "calls_products": any(" products(" in kernel.body for kernel in kernels),
        "calls_vectors": any("vector_begin(" in kernel.body for kernel in kernels),
        "lanes": VECTOR_LANES,
        "prescaled": PRESCALED,
        "has_bool": any("bool " in f"{kernel.signature} {kernel.body}" for kernel in kernels),
        "members": [_array(m) if isinstance(m, Array) else _record(m, places) for m in role.constants.members],
        "near": [_array(member) for member in role.constants.near],
        "helpers": helpers_as_c(),
        "buffers": list(_buffers(role)),
    }
    chosen = (*names, ROUTINES) if role.routines else names
    return {name: _environment().get_template(f"{name}.j2").render(**known, **values) for name in chosen}


def places_of(role: Role) -> Places:
    """The C references to places in memory of the role."""
    pointers = frozenset(word.name for word in role.words if word.is_address)
    near = frozenset(member.symbol for member in role.constants.near)
    structs = frozenset(m.symbol for m in role.constants.members if isinstance(m, Record) and not m.listed)
    return Places(role.constants.homes, structs, pointers, near, role.numbers)


@dataclass(frozen=True)
class Places:
    """The C references to symbols: members of the constants, by `homes`, or else offsets in the arena. `structs`:
    members that are a single struct. `words`: pointers in each PE's own data. `near`: members in the second struct of
    constants, beside the variables."""

    homes: Mapping[str, str]
    structs: frozenset[str]
    words: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    functions: Mapping[Callee, int] = field(default_factory=dict)
    """The numbers of the functions that the first program's table calls."""

    def address(self, symbol: str, offset: int = 0) -> str:
        """A pointer to `offset` bytes behind the symbol, of the symbol's type or void."""
        if symbol in self.words:
            return f"{_OWN}.{symbol}"
        if symbol not in self.homes:
            return f"ARENA({symbol}{f' + {offset}' if offset else ''})"
        home = self.homes[symbol]
        member = f"{'net_near' if home in self.near else 'net_constants'}.{home}"
        if symbol in self.structs:
            return f"&{member}"
        return f"(const void *)((const uint8_t *){member} + {offset})" if offset else member

    def field(self, value: Value) -> str:
        """The C of a struct member's value. Constants are void pointers: only the plug-in declares the type."""
        match value:
            case Number(address):
                return f"(uint32_t){self.address(address.symbol, address.offset)}"
            case Foreign(pe, offset):
                return f"(uint32_t)&{foreign_arena(pe)}[{offset}]"
            case Absolute(address):
                return f"(const void *)0x{address:08X}U"
            case Callee():
                return str(self.functions[value])
            case Address(symbol, offset):
                text = self.address(symbol, offset)
                return f"(const void *){text}" if text.startswith("net_constants.") else text
        return str(value)


@cache
def _environment() -> Environment:
    environment = templates_in("net")
    environment.filters |= {"comment": comment_text, "ranges": ranges, "numbers": _lines}
    return environment


@dataclass(frozen=True)
class _Member:
    """A member of the constants: declaration, alignment, initialiser, comment."""

    name: str
    declaration: str
    align: int
    value: str
    comment: str


def _record(record: Record, places: Places) -> _Member:
    declaration = f"struct {record.struct} {record.symbol}{f'[{len(record.rows)}]' if record.listed else ''}"
    rows = [[f".{name} = {places.field(value)}" for name, value in row] for row in record.rows]
    lines = [f"{{ {', '.join(fields)} }}" for fields in rows] if record.listed else rows[0]
    value = "{\n" + "".join(f"    {line},\n" for line in lines) + "}"
    return _Member(record.symbol, declaration, record.align, value, record.comment)


def _array(member: Array) -> _Member:
    values = member.array.values
    kind = C_TYPES[str(values.dtype)]
    others = [user for user in member.users if user != member.symbol]
    comment = member.array.comment + (f"; also {', '.join(others)}" if others else "")
    numbers = (values.astype(np.uint8) if values.dtype == bool else values).ravel().tolist()
    text = "{\n" + _lines(map(c_float, numbers) if values.dtype.kind == "f" else numbers) + "\n}"
    return _Member(member.symbol, f"{kind} {member.symbol}[{values.size}]", member.align, text, comment)


def _lines(numbers: Iterable[object]) -> str:
    """Numbers as full, indented lines: there are megabytes of weights."""
    words, indent = [f"{number}," for number in numbers], "   "
    ends = list(accumulate((len(word) + 1 for word in words), initial=0))
    breaks = [0]
    while breaks[-1] < len(words):
        breaks.append(max(bisect_right(ends, ends[breaks[-1]] + _LINE - len(indent)) - 1, breaks[-1] + 1))
    return "\n".join(" ".join([indent, *words[first:last]]) for first, last in pairwise(breaks))


def _buffers(role: Role) -> Iterator[dict[str, object]]:
    """The buffers of the first PE that the C names: none whose place differs between PEs."""
    program = role.first
    used = role.symbols() if role.own else program.offsets
    for buffer in program.arena.buffers.values():
        place = program.arena.place(buffer)
        if place in used:
            what = f"{buffer.tensor} {buffer.box}" if buffer.tensor else buffer.name
            comment = comment_text(f"{what}, {buffer.bytes} bytes, steps {buffer.first} to {buffer.last}")
            yield {"symbol": place, "offset": buffer.offset, "comment": comment}
