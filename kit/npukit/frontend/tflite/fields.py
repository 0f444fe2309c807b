"""Tables of a TFLite file field by field: what no reader takes must be at its default.

The schema's accessors know defaults and the fields there are; a field of a newer schema is one beyond them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import flatbuffers
import tflite
from flatbuffers.number_types import SOffsetTFlags, VOffsetTFlags

from npukit.errors import NpukitError

VECTOR = ("AsNumpy", "Length", "IsNone")
"""Suffixes of a vector's accessors beside the field's name."""

FIRST_SLOT, SLOT_BYTES = 4, 2
"""Slots of a flatbuffer's vtable, which begins with its own length and that of the table."""

ENUMERATIONS: Mapping[str, type] = {
    "FusedActivationFunction": tflite.ActivationFunctionType,
    "InDataType": tflite.TensorType,
    "Mode": tflite.MirrorPadMode,
    "OutDataType": tflite.TensorType,
    "OutType": tflite.TensorType,
    "OutputType": tflite.TensorType,
    "Padding": tflite.Padding,
    "QuantizedBiasType": tflite.TensorType,
    "WeightsFormat": tflite.FullyConnectedOptionsWeightsFormat,
}
"""The fields of options that hold one of a set of numbers."""


TABLES: Mapping[str, str] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), "Pool2D"),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimum"),
    **dict.fromkeys(("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), "Reducer"),
    "L2_NORMALIZATION": "L2Norm",
}
"""The options tables that are not named as their op."""


SAYS_NOTHING = frozenset(
    ("AsymmetricQuantizeInputs", "InDataType", "OutDataType", "PotScaleInt16", "QuantizedBiasType")
)
"""Fields of options that repeat what tensors say of their types, or say how float or int16 kernels round."""


class OpOptions(Mapping[str, Any]):
    """The fields of an op's options table by their accessors' names; it remembers which were read."""

    def __init__(self, table: Any = None) -> None:
        self._table = table
        self._read: set[str] = set()

    def of(self, op: str) -> OpOptions:
        """The options as op `op` has them: none in another op's table, which then may say nothing."""
        if self._table is None or _plain(type(self._table).__name__) == _plain(f"{TABLES.get(op, op)}Options"):
            return OpOptions(self._table)
        refuse_unread(self._table, (), f"its options are {type(self._table).__name__}, which")
        return OpOptions()

    def __getitem__(self, name: str) -> Any:
        if self._table is None or name not in accessors(type(self._table)):
            raise KeyError(name)
        self._read.add(_field(name))
        return _value(self._table, name)

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._table is None else accessors(type(self._table)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def check_count(self, name: str, count: int) -> None:
        """An error unless the field, if it is given, says how many there are."""
        if self.get(name, count) not in (0, count):
            raise NpukitError(f"its {name} is {self[name]}, but there are {count}")

    def check_read(self) -> None:
        """An error that names a field that says something and was not read."""
        if self._table is not None:
            refuse_unread(self._table, self._read | SAYS_NOTHING, "its options")


class Operands(tuple[int, ...]):
    """The tensors that an op reads, by number; it remembers which were asked for."""

    read: set[int]

    def __new__(cls, indices: Iterable[int]) -> Operands:
        made = super().__new__(cls, indices)
        made.read = set()
        return made

    def __getitem__(self, place: Any) -> Any:
        self.read.update(range(len(self))[place] if isinstance(place, slice) else [place % len(self)])
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[int]:
        self.read.update(range(len(self)))
        return super().__iter__()

    def check_read(self) -> None:
        """An error that names an operand that is given and not read."""
        for place in range(len(self)):
            if place not in self.read and super().__getitem__(place) >= 0:
                raise NpukitError(f"it has {len(self)} inputs; npukit does not read number {place}")


def refuse_unread(table: Any, read: Collection[str], place: str) -> None:
    """An error if a field that is not in `read` is not at its default."""
    kind = type(table)
    for name in accessors(kind):
        unread = _field(name) not in read and not name.endswith(("AsNumpy", "IsNone"))
        if unread and _value(table, name) != _default(kind, name):
            raise NpukitError(f"{place} set {_field(name)}, which npukit does not read")
    newer = [slot for slot in range(_slots_of(kind), _slots_in(table)) if table._tab.Offset(_place(slot))]
    if newer:
        raise NpukitError(f"{place} set field {newer[0]} of {kind.__name__}, which npukit does not know")


@cache
def accessors(kind: type) -> tuple[str, ...]:
    """The accessors without arguments: scalars, tables, and vectors by length and as numpy arrays."""
    members = ((name, getattr(member, "__code__", None)) for name, member in vars(kind).items() if name[0].isupper())
    return tuple(name for name, code in members if code is not None and code.co_argcount == 1)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _value(table: Any, name: str) -> Any:
    value = getattr(table, name)()
    known = ENUMERATIONS.get(name)
    if known is not None and value not in _numbers(known):
        raise NpukitError(f"its {name} is {value}, which TFLite does not define")
    return value


@cache
def _numbers(enumeration: type) -> frozenset[int]:
    return frozenset(value for value in vars(enumeration).values() if isinstance(value, int))


def _field(name: str) -> str:
    """The field of an accessor."""
    for suffix in VECTOR:
        name = name.removesuffix(suffix)
    return name


@cache
def _default(kind: type, name: str) -> Any:
    return getattr(_empty(kind), name)()


@cache
def _empty(kind: type) -> Any:
    """A table in which no field is set."""
    builder = flatbuffers.Builder(16)
    builder.StartObject(0)
    builder.Finish(builder.EndObject())
    return kind.GetRootAs(builder.Output())  # type: ignore[attr-defined]


class _Slots:
    """Takes the place of a builder to learn how many fields a table has."""

    count = 0

    def StartObject(self, count: int) -> None:  # noqa: N802 - flatbuffers' name
        self.count = count


@cache
def _slots_of(kind: type) -> int:
    slots = _Slots()
    getattr(tflite, f"{kind.__name__}Start")(slots)
    return slots.count


def _slots_in(table: Any) -> int:
    """The number of fields that the table's maker knew."""
    inside = table._tab
    vtable = inside.Pos - inside.Get(SOffsetTFlags, inside.Pos)
    return (inside.Get(VOffsetTFlags, vtable) - FIRST_SLOT) // SLOT_BYTES


def _place(slot: int) -> int:
    return FIRST_SLOT + SLOT_BYTES * slot
