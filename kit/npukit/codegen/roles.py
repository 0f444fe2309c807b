"""Roles: PEs whose programs have the same code. Common data is compiled; other data is each PE's own data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, repeat
from typing import TypeVar

import numpy as np

from npukit.accel.interface import Address, ConstantArray, Routine
from npukit.codegen.constants import (
    Absolute,
    Array,
    Callee,
    Constants,
    Fields,
    Foreign,
    Member,
    Number,
    Record,
    Value,
    lay_out,
)
from npukit.codegen.frame import FrameStep, renamed
from npukit.codegen.names import Names
from npukit.codegen.parts import Part, callees_of
from npukit.codegen.program import Program
from npukit.codegen.tensors import LayerTile, left_tiles
from npukit.codegen.tir.kernels import kernel, nameless
from npukit.net.ops.table import SPECS
from npukit.plan.predict.memory import ALIGNMENT, LAYER_BYTES, LAYER_NUMBER_BYTES, aligned
from npukit.structs import WORD

_Found = TypeVar("_Found")

BYTES_OF_A_LETTER = 1
"""Bytes of code for each letter of a kernel's C. Measured on the 39 kernels of SmolLM2: 0.26 to 0.79."""

LAYER_COUNT = "layer_count"
"""The word with the number of layers of a PE, where the PEs of a role differ."""

CODE_OF_A_CALL = 32
"""Bytes of code for a table's call of a function: measured 20."""


@dataclass(frozen=True)
class Word:
    """A member of `struct net_own`: an address or a number that the code reads from a PE's own data."""

    name: str
    type: str
    value: Address | int

    @property
    def is_address(self) -> bool:
        return isinstance(self.value, Address)

    def __str__(self) -> str:
        return self.value.symbol if isinstance(self.value, Address) else str(self.value)


@dataclass(frozen=True)
class OwnLayout:
    """The layout of one PE's own data: each member with its offset."""

    program: Program
    parts: tuple[tuple[int, Member], ...]
    words: tuple[int, tuple[Word, ...]]
    homes: dict[str, int]
    """Offsets by symbol."""
    common: dict[str, int]
    """Offsets, by symbol, in the constants common to all PEs."""
    functions: Mapping[Callee, int]
    """The numbers of the functions called by the program's table."""

    @property
    def bytes(self) -> int:
        ends = [offset + member.bytes for offset, member in self.parts]
        return aligned(max([self.words[0] + WORD * len(self.words[1]), *ends]))


@dataclass(frozen=True)
class Role:
    """PEs with the same program. The first PE represents all in the C."""

    programs: tuple[Program, ...]
    constants: Constants
    """The constants that are equal on every PE."""
    steps: tuple[FrameStep, ...]
    words: tuple[Word, ...]
    """The words of the first PE."""
    layers: tuple[LayerTile, ...] | None
    """The tile in each place of layers, if equal on all PEs."""
    places: int
    """The largest number of places of layers on a PE."""
    own: tuple[OwnLayout, ...]
    """The own data of each PE. Empty if nothing differs."""
    places_of_pages: tuple[OwnLayout, ...]
    """The layout of each PE with orders in DRAM, for the addresses in these orders."""
    parts: tuple[Part, ...]
    """The parts of the first program. In tables: the parts of all programs with distinct C."""
    functions: tuple[Callee, ...]
    """The functions that tables call, in the order of their numbers. A kernel has the name of its part in `parts`."""
    numbers: Mapping[Callee, int]
    """The numbers of the functions that the first program calls, by that program's names."""

    @property
    def first(self) -> Program:
        return self.programs[0]

    @property
    def pes(self) -> tuple[int, ...]:
        return tuple(program.pe for program in self.programs)

    @cached_property
    def activation_bytes(self) -> int:
        return max(program.activation_bytes for program in self.programs)

    @property
    def arena_bytes(self) -> int:
        """The bytes behind the first program's control block and records."""
        return self.activation_bytes - self.first.control_bytes

    @cached_property
    def routines(self) -> tuple[Routine, ...]:
        return _once(program.routines for program in self.programs)

    @cached_property
    def headers(self) -> tuple[str, ...]:
        return tuple(sorted(_once(program.headers for program in self.programs)))

    @cached_property
    def wrappers(self) -> tuple[str, ...]:
        return _once(program.wrappers for program in self.programs)

    @property
    def own_bytes(self) -> int:
        return max((own.bytes for own in self.own), default=0)

    def symbols(self) -> set[str]:
        """The symbols in the code and in the data common to all PEs."""
        records = (member for member in self.constants.members if isinstance(member, Record))
        values = [value for record in records for value in record.values()]
        values += [operand.value for step in self.steps for operand in step.operands()]
        values += [layer.place for layer in self.layers or ()]
        addresses = (value.address if isinstance(value, Number) else value for value in values)
        return {address.symbol for address in addresses if isinstance(address, Address)}


def roles_of(
    programs: Sequence[Program],
    room: Callable[[Program], int],
    kind: Callable[[Program], Hashable] = lambda program: None,
) -> list[Role]:
    """Group programs into roles by their code, in the order of their first PEs. Programs with most in common stay
    together.

    `room`: bytes for constants and activations together on a program's PE. All PEs of a role have their data at the
    same addresses. The large activations of one PE and the large constants of another may thus be too much for one
    role. `kind`: a property that all PEs of a role share whatever they compute, such as the core. Programs that are
    tables share the functions they call, as far as there is room.
    """
    alike: dict[object, list[Program]] = {}
    kernels = _Kernels()
    for program in programs:
        alike.setdefault((kind(program), _code(program, kernels)), []).append(program)
    groups = [group for same in alike.values() for group in _groups_that_fit(same, room, kernels)]
    places = {id(program): place for place, program in enumerate(programs)}
    return [_role(group, kernels) for group in sorted(groups, key=lambda group: places[id(group[0])])]


def alone(program: Program) -> Role:
    """The role of a single PE's program."""
    return _role([program], _Kernels())


def _once(every: Iterable[Iterable[_Found]]) -> tuple[_Found, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(every)))


def _code(program: Program, kernels: _Kernels) -> object:
    """The key of a program's code. Programs with equal keys can share code."""
    place = program.is_root, program.leads, bool(program.pages)
    if program.table:
        return place, *{part.engine.name for part in program.parts if part.chained}
    made = [part for part in program.parts if part.from_tir]
    numbers = tuple(map(kernels.number, made))
    unnamed = {part.tile.name: "" for part in made}
    steps = tuple(renamed(step, unnamed).code for step in program.steps)
    routines = tuple(routine.name for routine in program.routines)
    engines = tuple(sorted({part.engine.name for part in program.parts}))
    return place, len(program.layers), steps, numbers, routines, engines, program.headers, program.wrappers


class _Kernels:
    """The kernels made from TIR for all programs, numbered by their C. Tiles whose C depends on the same values are
    printed once. `bytes`: the code of each function that a table calls, with the call."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._texts: list[int] = []
        self._called: dict[int, dict[Callee, Callee]] = {}
        self.bytes: dict[Callee, int] = {}

    def number(self, part: Part) -> int:
        tile = part.tile
        operands, anywhere = (tile.output, *tile.inputs), SPECS[tile.op.kind].elementwise
        places = tuple((e.box.shape if anywhere else e.box, e.row_stride, e.pixel_stride) for e in operands)
        constants = tuple((c.symbol, str(c.values.dtype), c.values.size) for c in part.lowered.constants)
        key = tile.op.name, places, tile.scratch is None, constants
        if key not in self._numbers:
            text = nameless(kernel(tile, part.lowered.constants))
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(BYTES_OF_A_LETTER * len("".join(text[1].split())))
            self._numbers[key] = self._numbers[text]
        return self._numbers[key]

    def called(self, program: Program) -> Mapping[Callee, Callee]:
        """The functions that a table calls, by the program's names, with common names: numbers for kernels."""
        if id(program) in self._called:
            return self._called[id(program)]
        common = self._called[id(program)] = dict[Callee, Callee]()
        sizes = {routine.name: routine.bytes for routine in program.routines}
        for part in program.parts if program.table else ():
            number = self.number(part) if part.from_tir else None
            for callee in () if part.chained else callees_of(part):
                common[callee] = callee if number is None else replace(callee, name=str(number))
                size = sizes.get(callee.name, 0) if number is None else self._texts[number]
                self.bytes[common[callee]] = CODE_OF_A_CALL + size
        return common


@dataclass
class _Group:
    """Programs with the same code, while a group is filled. `sizes`: the largest activations and constants in bytes.
    `room`: the least."""

    kernels: _Kernels
    programs: list[Program] = field(default_factory=list)
    sizes: tuple[int, int] = (0, 0)
    room: int = 1 << 32
    called: frozenset[Callee] = frozenset()

    def with_program(self, program: Program, sizes: tuple[int, int], room: int) -> _Group:
        """The group with another program. The room includes the code of called functions, which `fits` counts."""
        own = frozenset(self.kernels.called(program).values())
        largest = max(self.sizes[0], sizes[0]), max(self.sizes[1], sizes[1])
        least = min(self.room, room + self._code(own))
        return _Group(self.kernels, [*self.programs, program], largest, least, self.called | own)

    def _code(self, called: Iterable[Callee]) -> int:
        return sum(self.kernels.bytes[each] for each in called)

    @property
    def fits(self) -> bool:
        return sum(self.sizes) + self._code(self.called) <= self.room


def _groups_that_fit(
    programs: Sequence[Program], room: Callable[[Program], int], kernels: _Kernels
) -> Iterator[list[Program]]:
    """Groups of programs by first fit, in the order of size: programs with similar needs are together."""
    sizes = {program.pe: (program.activation_bytes, _constant_bytes(program)) for program in programs}
    group = _Group(kernels)
    for program in sorted(programs, key=lambda program: (sizes[program.pe], program.pe)):
        larger = group.with_program(program, sizes[program.pe], room(program))
        if group.programs and not larger.fits:
            yield sorted(group.programs, key=lambda each: each.pe)
            larger = _Group(kernels).with_program(program, sizes[program.pe], room(program))
        group = larger
    yield sorted(group.programs, key=lambda each: each.pe)


def _constant_bytes(program: Program) -> int:
    """The bytes of a program's constants, with the words and tables of layers that sharing may add. Equal constants of
    tiles of several frames count once."""
    words = sum(len(step.operands()) for step in program.steps)
    members = lay_out(program.arrays, program.records).bytes
    layers = LAYER_BYTES * _places(program) + LAYER_NUMBER_BYTES * len(program.layers)
    return members + WORD * words + layers + 2 * ALIGNMENT


def _places(program: Program) -> int:
    """The number of places of layers."""
    return len(set(program.layer_places)) or len(program.layers)


class _Identities:
    """The identity of a program's data, independent of names: equal numbers mean equal bytes at any address. `known`:
    the numbers, shared by all programs in a comparison."""

    def __init__(self, program: Program, known: dict[object, int], called: Mapping[Callee, Callee]) -> None:
        self._program, self._known, self._called = program, known, called
        self._arrays = {array.symbol: array for array in program.arrays}
        self._records = {record.symbol: record for record in program.records}
        self._found: dict[str, int] = {}

    def all(self) -> frozenset[int]:
        return frozenset(map(self.of, self.symbols()))

    def symbols(self) -> tuple[str, ...]:
        return *self._arrays, *self._records

    def laid_out(self, chosen: Callable[[int], bool]) -> Constants:
        """The program's data of the chosen identities."""
        arrays = [array for array in self._program.arrays if chosen(self.of(array.symbol))]
        return lay_out(arrays, [record for record in self._program.records if chosen(self.of(record.symbol))])

    def of(self, symbol: str) -> int:
        """The identity of a symbol's data, found after all data it refers to. No recursion: chains are long."""
        wanted = [symbol]
        while wanted and symbol not in self._found:
            values = self._records[wanted[-1]].values() if wanted[-1] in self._records else ()
            addresses = (value.address if isinstance(value, Number) else value for value in values)
            missing = [a.symbol for a in addresses if isinstance(a, Address) and a.symbol not in self._found]
            if missing:
                wanted += missing
            else:
                done = wanted.pop()
                self._found[done] = self._known.setdefault(self._content(done), len(self._known))
        return self._found[symbol]

    def _content(self, symbol: str) -> object:
        if symbol in self._program.offsets:
            return "arena", self._program.offsets[symbol]
        if symbol in self._arrays:
            array = self._arrays[symbol]
            return "array", str(array.values.dtype), array.align, np.ascontiguousarray(array.values).tobytes()
        record = self._records[symbol]
        rows = tuple(tuple((name, self.value(value)) for name, value in row) for row in record.rows)
        return "record", record.struct, record.listed, rows

    def value(self, value: Value) -> object:
        """The identity of a value, in a form that hashes fast: there are many values."""
        if isinstance(value, int | str):
            return value
        match value:
            case Number(Address(symbol, offset)) | Address(symbol, offset):
                return self.of(symbol), offset
            case Foreign(pe, offset):
                return "foreign", pe, offset
            case Absolute(address):
                return "absolute", address
            case Callee():
                return self._called[value]
        return value


def _role(programs: Sequence[Program], kernels: _Kernels) -> Role:
    first = programs[0]
    known: dict[object, int] = {}
    called = [kernels.called(program) for program in programs]
    identities = [_Identities(*each) for each in zip(programs, repeat(known), called, strict=False)]
    common = frozenset.intersection(*(each.all() for each in identities))
    constants = identities[0].laid_out(lambda identity: identity in common)
    places = {identities[0].of(symbol): offset for symbol, offset in constants.offsets_by_symbol.items()}
    functions = {callee: number for number, callee in enumerate(_once(each.values() for each in called))}
    numbers = [{own: functions[found] for own, found in each.items()} for each in called]
    named = _named(programs, kernels) if first.table else {}
    sharing = _Sharing(programs, identities, places, numbers)
    steps, words = sharing.steps()
    layers = sharing.layers()
    needs_own = words[0] or layers is None or any(each.all() - common for each in identities)
    own = tuple(sharing.own(number, words[number], layers is None) for number in range(len(programs)))
    paged, own = own if first.pages else (), own if needs_own else ()
    parts = tuple(named.values()) if first.table else first.parts
    names = {key: part.tile.name for key, part in named.items()}
    by_name = tuple(replace(callee, name=names.get(callee.name, callee.name)) for callee in functions)
    shared = constants, steps, words[0], layers, sharing.places
    return Role(tuple(programs), *shared, own, paged, parts, by_name, numbers[0])


def _named(programs: Sequence[Program], kernels: _Kernels) -> Mapping[Hashable, Part]:
    """The parts of tables with distinct C, each under a unique name. The key of a kernel is its number."""
    found: dict[Hashable, Part] = {}
    for part in chain.from_iterable(program.parts for program in programs):
        called = None if part.chained else tuple(callees_of(part))
        key = str(kernels.number(part)) if part.from_tir else (part.engine.name, called)
        found.setdefault(key, part)
    names = Names()
    for key, part in found.items():
        old, name = part.tile.name, names.identifier(part.tile.name)
        arrays = (replace(each, symbol=name + each.symbol.removeprefix(old)) for each in part.lowered.constants)
        lowered = replace(part.lowered, constants=tuple(arrays))
        found[key] = replace(part, tile=replace(part.tile, name=name), lowered=lowered)
    return found


@dataclass(frozen=True)
class _Sharing:
    """A comparison of the programs of a role."""

    programs: Sequence[Program]
    identities: Sequence[_Identities]
    common: dict[int, int]
    """Offsets, by identity, in the constants common to all programs."""
    functions: Sequence[Mapping[Callee, int]]
    """The numbers of the functions called by each program."""

    def steps(self) -> tuple[tuple[FrameStep, ...], list[tuple[Word, ...]]]:
        """The steps common to all programs, and each program's words for the operands that differ."""
        steps: list[FrameStep] = []
        words: list[list[Word]] = [[] for _ in self.programs]
        if self.differ_in_layers:
            words = [[Word(LAYER_COUNT, "uint32_t ", len(program.layers))] for program in self.programs]
        for index, same in enumerate(zip(*(program.steps for program in self.programs), strict=True)):
            slots = list(zip(*(step.operands() for step in same), strict=True))
            values: list[Address | int | str] = []
            for number, slot in enumerate(slots):
                if self._is_shared([operand.value for operand in slot]):
                    values.append(slot[0].value)
                    continue
                name = f"step_{index}" + (f"_{slot[0].name or number}" if len(slots) > 1 else "")
                for own, operand in zip(words, slot, strict=True):
                    own.append(Word(name, operand.type, operand.value))
                values.append(Address(name) if isinstance(slot[0].value, Address) else name)
            steps.append(same[0].with_operands(values))
        return tuple(steps), [tuple(own) for own in words]

    @property
    def differ_in_layers(self) -> bool:
        """True if the programs differ in their numbers of layers."""
        return len({len(program.layers) for program in self.programs}) > 1

    def _is_shared(self, values: Sequence[Address | int]) -> bool:
        """True if all programs have the same value, in memory with the same layout on all PEs."""
        found = {each.value(value) for each, value in zip(self.identities, values, strict=True)}
        if len(found) > 1 or not isinstance(values[0], Address):
            return len(found) == 1
        identity = self.identities[0].of(values[0].symbol)
        return identity in self.common or values[0].symbol in self.programs[0].offsets

    def layers(self) -> tuple[LayerTile, ...] | None:
        if self.differ_in_layers or len({program.layer_places for program in self.programs}) > 1:
            return None
        tiles = [left_tiles(program) for program in self.programs]
        for same in zip(*tiles, strict=True):
            shapes = {(tile.row_bytes, tile.rows, tile.planes) for tile in same}
            if len(shapes) > 1 or not self._is_shared([tile.place for tile in same]):
                return None
        return tuple(tiles[0])

    def own(self, number: int, words: tuple[Word, ...], own_layers: bool) -> OwnLayout:
        """The own data of one program: its words, its constants, and its table of layers if `own_layers`."""
        program, identities = self.programs[number], self.identities[number]
        layers: list[tuple[int, Member]] = [(0, _layers_record(left_tiles(program)))] if own_layers else []
        start = LAYER_BYTES * self.places if own_layers else 0
        end = start + WORD * len(words)
        if own_layers and program.layer_places:
            values = np.array(program.layer_places, np.uint16)
            numbers = Array(ConstantArray("layer_numbers", values, align=2, comment="place of each layer"), ())
            layers.append((end, numbers))
            end += numbers.bytes
        kept = identities.laid_out(lambda identity: identity not in self.common)
        base = aligned(end)
        placed = [(base + offset, member) for offset, member in zip(kept.offsets, kept.members, strict=True)]
        homes = {symbol: base + offset for symbol, offset in kept.offsets_by_symbol.items()}
        found = ((symbol, self.common.get(identities.of(symbol))) for symbol in identities.symbols())
        common = {symbol: offset for symbol, offset in found if offset is not None}
        return OwnLayout(program, (*layers, *placed), (start, words), homes, common, self.functions[number])

    @property
    def places(self) -> int:
        """The largest number of places of layers in one program."""
        return max(map(_places, self.programs))


def _layers_record(tiles: Sequence[LayerTile]) -> Record:
    names = ("data", "row_bytes", "rows", "row_stride", "planes", "plane_stride")
    members = [(t.place, t.row_bytes, t.rows.count, t.rows.stride, t.planes.count, t.planes.stride) for t in tiles]
    rows: tuple[Fields, ...] = tuple(tuple(zip(names, each, strict=True)) for each in members)
    return Record("net_layers", "net_layer", rows, WORD, LAYER_BYTES, "what each layer leaves behind", listed=True)


def foreign_pes(members: Sequence[Member]) -> set[int]:
    """PEs whose activations the members refer to."""
    records = (member for member in members if isinstance(member, Record))
    return {value.pe for record in records for value in record.values() if isinstance(value, Foreign)}
