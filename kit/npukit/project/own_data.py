"""Own data as bytes: the data that differs between PEs of one program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct

from npukit.codegen.sources import OwnData, PeData, Spot
from npukit.codegen.streamed import DramPiece
from npukit.host.parallel import in_order, shares
from npukit.plan.ir.plan import orders_name
from npukit.project.layout import MemoryLayout
from npukit.project.struct_layouts import Layouts, Member, MemberPlace, Questions
from npukit.structs import WORD

MANY_PES = 20
"""Smallest number of PEs whose data is computed in several processes."""

Shape = tuple[str, tuple[str, ...]]
"""Struct and members. Rows of equal shape are packed alike."""


def questions_about(data: Iterable[OwnData]) -> Questions:
    """The questions about structs and constants whose answers fix the layout of all this data."""
    data = list(data)
    rows = [row for own in data for row in own.rows()]
    shapes = {(row.struct, row.names) for row in rows if row.struct}
    members = {Member(struct, name) for struct, names in shapes for name in names}
    constants = {value for row in rows for value in row.values if isinstance(value, str)}
    headers = {"stdint.h", *(header for own in data for header in own.headers)}
    return Questions(tuple(sorted(members)), tuple(sorted(constants)), tuple(sorted(headers)))


class Addresses:
    """Addresses of the sections of a program, and of the activations of every PE."""

    def __init__(self, layout: MemoryLayout, constants: int, activations: Mapping[int, int]) -> None:
        self._sections = {"constants": constants, "activations": layout.activations.start, "own": layout.own.start}
        self._activations = activations

    def of(self, spot: Spot) -> int:
        start = self._sections[spot.section] if spot.pe is None else self._activations[spot.pe]
        return start + spot.offset


def own_bytes(own: OwnData, layouts: Layouts, addresses: Addresses) -> bytes:
    """The own data of every PE of a role in turn, each padded to the reserved bytes."""
    return b"".join(_packed([(own.bytes, pe) for pe in own.pes], layouts, addresses))


def order_pieces(own: OwnData, layouts: Layouts, addresses: Addresses) -> tuple[DramPiece, ...]:
    """The contents of DRAM for each PE with orders there."""
    names = (orders_name(pe.pe) for _, pe in own.pages)
    return tuple(map(DramPiece, names, _packed(own.pages, layouts, addresses)))


def _packed(pes: Sequence[tuple[int, PeData]], layouts: Layouts, addresses: Addresses) -> Iterator[bytes]:
    """The bytes of each PE's data, padded to a size."""

    def packed(share: Sequence[tuple[int, PeData]]) -> list[bytes]:
        forms: dict[Shape, _Form] = {}
        return [_bytes_of(pe, size, forms, layouts, addresses) for size, pe in share]

    return chain.from_iterable(in_order(packed, shares(pes) if len(pes) >= MANY_PES else [pes]))


@dataclass(frozen=True)
class _Form:
    """The packing of a row's numbers: a mask for each, and their order by offset."""

    masks: tuple[int, ...]
    order: tuple[int, ...]
    first: int
    packed: Struct


_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _form(shape: Shape, layouts: Layouts) -> _Form:
    struct, names = shape
    words = [MemberPlace(WORD * index, WORD) for index in range(len(names))]
    places = [layouts.members[Member(struct, name)] for name in names] if struct else words
    order = sorted(range(len(places)), key=lambda index: places[index].offset)
    first = places[order[0]].offset if order else 0
    text, end = "<", first
    for index in order:
        text += f"{places[index].offset - end}x{_LETTERS[places[index].size]}"
        end = places[index].offset + places[index].size
    return _Form(tuple((1 << 8 * place.size) - 1 for place in places), tuple(order), first, Struct(text))


def _bytes_of(pe: PeData, size: int, forms: dict[Shape, _Form], layouts: Layouts, addresses: Addresses) -> bytes:
    """The bytes of a PE's data. `forms`: a cache of packings."""
    memory = bytearray(size)
    for offset, data in pe.arrays:
        memory[offset : offset + len(data)] = data
    for row in pe.rows:
        shape = row.struct, row.names
        form = forms.get(shape) or forms.setdefault(shape, _form(shape, layouts))
        values = [_number(value, layouts, addresses) & mask for value, mask in zip(row.values, form.masks, strict=True)]
        form.packed.pack_into(memory, row.offset + form.first, *[values[index] for index in form.order])
    return bytes(memory)


def _number(value: int | str | Spot, layouts: Layouts, addresses: Addresses) -> int:
    if isinstance(value, int):
        return value
    return addresses.of(value) if isinstance(value, Spot) else layouts.constants[value]


def listing(own: OwnData) -> str:
    """A readable listing of the first PE's data, by offset."""
    pe = own.pes[0]
    lines = {offset: f"{len(data)} bytes of weights or parameters" for offset, data in pe.arrays}
    for row in pe.rows:
        members = ", ".join(f"{name} = {_shown(value)}" for name, value in zip(row.names, row.values, strict=True))
        lines[row.offset] = f"{f'struct {row.struct}' if row.struct else 'words of struct net_own'}: {members}"
    title = f"What PE {pe.pe} has of its own, by offset from net_own; other PEs of this program have the like.\n"
    return title + "".join(f"\n{offset:#07x}  {text}" for offset, text in sorted(lines.items())) + "\n"


def _shown(value: int | str | Spot) -> str:
    if not isinstance(value, Spot):
        return str(value)
    place = f"{value.section} + {value.offset:#x}"
    return place if value.pe is None else f"{place} of PE {value.pe}"
