"""The data by which PEs of one program differ, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from npukit.codegen.sources import OwnData, PeData, Row, Spot
from npukit.project.layout import MemoryLayout
from npukit.project.struct_layouts import Layouts, Member, Questions, questions

WORD = 4


def questions_about(data: Iterable[OwnData]) -> Questions:
    """What must be known of structs and constants to lay out all this data."""
    data = list(data)
    rows = [row for own in data for pe in own.pes for row in pe.rows]
    members = {Member(row.struct, name) for row in rows if row.struct for name, _ in row.values}
    constants = {value for row in rows for _, value in row.values if isinstance(value, str)}
    return questions(members, constants, {header for own in data for header in own.headers})


class Addresses:
    """Where the sections of a program lie, and the activations of every PE."""

    def __init__(self, layout: MemoryLayout, constants: int, activations: Mapping[int, int]) -> None:
        self._sections = {"constants": constants, "activations": layout.activations.start, "own": layout.own.start}
        self._activations = activations

    def of(self, spot: Spot) -> int:
        start = self._sections[spot.section] if spot.pe is None else self._activations[spot.pe]
        return start + spot.offset


def own_bytes(own: OwnData, layouts: Layouts, addresses: Addresses) -> bytes:
    """The data of every PE of a role, one after the other, each as many bytes as are reserved for it."""
    return b"".join(_bytes_of(pe, own.bytes, layouts, addresses) for pe in own.pes)


def _bytes_of(pe: PeData, size: int, layouts: Layouts, addresses: Addresses) -> bytes:
    memory = bytearray(size)
    for offset, data in pe.arrays:
        memory[offset : offset + len(data)] = data
    for row in pe.rows:
        for offset, width, value in _numbers(row, layouts, addresses):
            memory[offset : offset + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(memory)


def _numbers(row: Row, layouts: Layouts, addresses: Addresses) -> Iterator[tuple[int, int, int]]:
    """Offset, size and value of each number of a row."""
    for index, (name, value) in enumerate(row.values):
        number = _number(value, layouts, addresses)
        if row.struct:
            place = layouts.members[Member(row.struct, name)]
            yield row.offset + place.offset, place.size, number
        else:
            yield row.offset + WORD * index, WORD, number


def _number(value: int | str | Spot, layouts: Layouts, addresses: Addresses) -> int:
    match value:
        case Spot():
            return addresses.of(value)
        case str():
            return layouts.constants[value]
    return value


def listing(own: OwnData) -> str:
    """The data of the first PE for a reader, place by place."""
    pe = own.pes[0]
    lines = {offset: f"{len(data)} bytes of weights or parameters" for offset, data in pe.arrays}
    lines |= {row.offset: f"{_kind(row)}: {', '.join(f'{n} = {_shown(v)}' for n, v in row.values)}" for row in pe.rows}
    title = f"What PE {pe.pe} has of its own, by offset from net_own; other PEs of this program have the like.\n"
    return title + "".join(f"\n{offset:#07x}  {text}" for offset, text in sorted(lines.items())) + "\n"


def _kind(row: Row) -> str:
    return f"struct {row.struct}" if row.struct else "words of struct net_own"


def _shown(value: int | str | Spot) -> str:
    if not isinstance(value, Spot):
        return str(value)
    place = f"{value.section} + {value.offset:#x}"
    return place if value.pe is None else f"{place} of PE {value.pe}"
