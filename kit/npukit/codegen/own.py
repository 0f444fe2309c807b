"""The own data of a role's PEs, as bytes and as structs whose values are numbers and places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from npukit.accel.interface import Address
from npukit.codegen.constants import Absolute, Array, Foreign, Number, Record, Value
from npukit.codegen.roles import OwnLayout, Role
from npukit.codegen.sources import OwnData, PeData, Row, Spot


def own_data(role: Role) -> OwnData:
    """The data of every PE of the role."""
    headers = tuple(sorted({"net.h", *role.first.headers}))
    return OwnData(role.own_bytes, tuple(_pe_data(own) for own in role.own), headers)


def _pe_data(own: OwnLayout) -> PeData:
    arrays = tuple(
        (offset, np.ascontiguousarray(member.array.values).tobytes())
        for offset, member in own.parts
        if isinstance(member, Array)
    )
    return PeData(own.program.pe, arrays, tuple(_rows(own)))


def _rows(own: OwnLayout) -> Iterator[Row]:
    start, words = own.words
    if words:
        yield Row(start, "", tuple(word.name for word in words), tuple(_value(own, word.value) for word in words))
    for offset, member in own.parts:
        if isinstance(member, Record):
            for index, fields in enumerate(member.rows):
                names, values = zip(*fields, strict=True)
                found = tuple([_value(own, value) for value in values])
                yield Row(offset + index * member.row_bytes, member.struct, names, found)


def _value(own: OwnLayout, value: Value) -> int | str | Spot:
    if isinstance(value, int | str):  # most are
        return value
    match value:
        case Number(address):
            return _spot(own, address)
        case Address():
            return _spot(own, value)
        case Foreign(pe, offset):
            return Spot("activations", offset, pe)
        case Absolute(address):
            return address
    return value


def _spot(own: OwnLayout, address: Address) -> Spot:
    if address.symbol in own.program.offsets:
        return Spot("activations", own.program.offsets[address.symbol] + address.offset)
    if address.symbol in own.homes:
        return Spot("own", own.homes[address.symbol] + address.offset)
    return Spot("constants", own.common[address.symbol] + address.offset)
