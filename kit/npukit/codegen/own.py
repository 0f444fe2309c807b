"""The own data of a role's PEs: bytes, and structs of numbers and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from npukit.accel.interface import Address
from npukit.codegen.constants import Absolute, Array, Callee, Foreign, Number, Record, Value
from npukit.codegen.roles import OwnLayout, Role
from npukit.codegen.sources import OwnData, PeData, Row, Spot


def own_data(role: Role) -> OwnData:
    """The data of every PE of the role."""
    headers = tuple(sorted({"net.h", *role.headers}))
    pages = tuple(_pages(own) for own in role.places_of_pages)
    return OwnData(role.own_bytes, tuple(_pe_data(own) for own in role.own), headers, pages)


def _pages(own: OwnLayout) -> tuple[int, PeData]:
    """The pages of a PE in DRAM, and their total bytes."""
    program, rows, size = own.program, list[Row](), 0
    assert program.table is not None
    assert program.table.room is not None
    room = program.table.room
    for number, page in enumerate(program.pages):
        begin, here = number * room.bytes, program.offsets[room.symbol] + number % 2 * room.bytes
        homes = {record.symbol: Spot("activations", here + offset) for offset, record in page.members()}
        for offset, record in page.members():
            rows += _record_rows(own, begin + offset, record, homes)
        size = begin + page.bytes
    return size, PeData(program.pe, (), tuple(rows))


def _pe_data(own: OwnLayout) -> PeData:
    (start, words), arrays, rows = own.words, list[tuple[int, bytes]](), list[Row]()
    if words:
        values = tuple(_value(own, word.value, {}) for word in words)
        rows.append(Row(start, "", tuple(word.name for word in words), values))
    for offset, member in own.parts:
        if isinstance(member, Array):
            arrays.append((offset, np.ascontiguousarray(member.array.values).tobytes()))
        else:
            rows += _record_rows(own, offset, member, {})
    return PeData(own.program.pe, tuple(arrays), tuple(rows))


def _record_rows(own: OwnLayout, offset: int, record: Record, homes: Mapping[str, Spot]) -> Iterator[Row]:
    """The rows of a record. `homes`: the addresses of symbols that exist only in a page."""
    for index, fields in enumerate(record.rows):
        names, values = zip(*fields, strict=True)
        yield Row(offset + index * record.row_bytes, record.struct, names, tuple(_value(own, v, homes) for v in values))


def _value(own: OwnLayout, value: Value, homes: Mapping[str, Spot]) -> int | str | Spot:
    if isinstance(value, int | str):  # the common case
        return value
    match value:
        case Number(Address() as address) | (Address() as address):
            if address.symbol in homes:
                return replace(homes[address.symbol], offset=homes[address.symbol].offset + address.offset)
            if address.symbol in own.program.offsets:
                return Spot("activations", own.program.offsets[address.symbol] + address.offset)
            if address.symbol in own.homes:
                return Spot("own", own.homes[address.symbol] + address.offset)
            return Spot("constants", own.common[address.symbol] + address.offset)
        case Foreign(pe, offset):
            return Spot("activations", offset, pe)
        case Absolute(address):
            return address
        case Callee():
            return own.functions[value]
    return value
