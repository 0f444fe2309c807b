"""The constants of a program: a C struct with a fixed order and fixed offsets, so every byte's address is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.interface import Address, ConstantArray, Field


@dataclass(frozen=True)
class Number:
    """An address stored as a number in a struct."""

    address: Address


@dataclass(frozen=True)
class Foreign:
    """The address, as a number, of a byte in another PE's activations. `offset`: from their start."""

    pe: int
    offset: int


@dataclass(frozen=True)
class Absolute:
    """An absolute address outside this program, as in DRAM."""

    address: int


@dataclass(frozen=True)
class Callee:
    """A function called by rows of a table, which hold its number. `pointers`: True for each argument that is an
    address. `checked`: the function returns 0 or an error code. `wait`: the function only starts the work, and the
    function `wait` waits for the end."""

    name: str
    pointers: tuple[bool, ...]
    checked: bool = False
    wait: str | None = None


Value = Field | Number | Foreign | Absolute | Callee
Fields = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Record:
    """A struct as a constant, or with `listed` an array of structs. `row_bytes`: the size of a single struct."""

    symbol: str
    struct: str
    rows: tuple[Fields, ...]
    align: int
    row_bytes: int
    comment: str
    listed: bool = False

    def values(self) -> Iterator[Value]:
        """The values of all members of all structs."""
        return (value for row in self.rows for _, value in row)

    @property
    def bytes(self) -> int:
        return self.row_bytes * len(self.rows)


@dataclass(frozen=True)
class Array:
    """An array as a constant. Layers with equal arrays share it. `users`: the symbols of these layers."""

    array: ConstantArray
    users: tuple[str, ...]

    @property
    def symbol(self) -> str:
        return self.array.symbol

    @property
    def align(self) -> int:
        return alignment(self.array)

    @property
    def bytes(self) -> int:
        return self.array.values.nbytes


def alignment(array: ConstantArray) -> int:
    return max(array.align, array.values.dtype.itemsize)


Member = Array | Record


@dataclass(frozen=True)
class Constants:
    """The members in order, the offsets, the whole size, and the member that holds each symbol's bytes. `near`: arrays
    beside the program's variables, outside this struct and not in the size."""

    members: tuple[Member, ...]
    offsets: tuple[int, ...]
    bytes: int
    homes: dict[str, str]
    near: tuple[Array, ...] = ()

    @property
    def offsets_by_symbol(self) -> dict[str, int]:
        """The offsets by the symbols of all users. The entries of `near` arrays are 0 and unused."""
        offsets = {member.symbol: offset for member, offset in zip(self.members, self.offsets, strict=True)}
        return {symbol: offsets.get(home, 0) for symbol, home in self.homes.items()}


def lay_out(arrays: Iterable[ConstantArray], records: Sequence[Record]) -> Constants:
    """Lay out arrays and records by descending alignment, with hardly any gaps. Records precede arrays among equals.
    Equal arrays are stored once."""
    alike: dict[tuple[str, int, bytes, bool], list[ConstantArray]] = {}
    for array in arrays:
        values = np.ascontiguousarray(array.values)
        alike.setdefault((str(values.dtype), array.align, values.tobytes(), array.near), []).append(array)
    shared = [Array(same[0], tuple(array.symbol for array in same)) for same in alike.values()]
    far = [each for each in shared if not each.array.near]
    members = sorted([*records, *far], key=lambda member: (-member.align, member.bytes % member.align != 0))
    homes = {user: array.symbol for array in shared for user in array.users}
    homes |= {record.symbol: record.symbol for record in records}
    offsets, end = list[int](), 0
    for member in members:
        offsets.append(_up(end, member.align))
        end = offsets[-1] + member.bytes
    size = _up(end, max((member.align for member in members), default=1))
    return Constants(tuple(members), tuple(offsets), size, homes, tuple(each for each in shared if each.array.near))


def _up(value: int, align: int) -> int:
    return -(-value // align) * align
