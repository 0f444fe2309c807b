"""Fields of the tables in a TFLite file. A field must have its default value if no reader uses it.

The schema's accessors define fields and defaults. A field of a newer schema has a slot beyond the known slots.
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
"""Suffixes of a vector field's additional accessors."""

FIRST_SLOT, SLOT_BYTES = 4, 2
"""Offset of the first field's slot in a flatbuffer's vtable, and bytes per slot. Two lengths precede the slots."""

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
"""Fields of options whose values are enumerated."""


TABLES: Mapping[str, str] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), "Pool2D"),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimum"),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"), "Reducer"),
    "CONV_3D_TRANSPOSE": "Conv3D",
    "L2_NORMALIZATION": "L2Norm",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNN",
}
"""Prefixes of the names of options tables, by op, where the op's own name is not the prefix."""


SAYS_NOTHING = frozenset(
    ("AsymmetricQuantizeInputs", "InDataType", "OutDataType", "PotScaleInt16", "QuantizedBiasType")
)
"""Fields of options that repeat the types of tensors, or choose the rounding of float or int16 kernels."""


class OpOptions(Mapping[str, Any]):
    """The fields of an op's options table by accessor name. Records which fields are read."""

    def __init__(self, table: Any = None) -> None:
        self._table = table
        self._read: set[str] = set()

    def of(self, op: str) -> OpOptions:
        """The options of op `op`. Another op's table yields no options, and must have all fields at their defaults."""
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
        """Raises an error if the field is given and differs from `count`."""
        if self.get(name, count) not in (0, count):
            raise NpukitError(f"its {name} is {self[name]}, but there are {count}")

    def check_read(self) -> None:
        """Raises an error for an unread field without its default value."""
        if self._table is not None:
            refuse_unread(self._table, self._read | SAYS_NOTHING, "its options")


class Operands(tuple[int, ...]):
    """The indices of an op's input tensors. Records the accessed operands."""

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
        """Raises an error for an operand that is given but unread."""
        for place in range(len(self)):
            if place not in self.read and super().__getitem__(place) >= 0:
                raise NpukitError(f"it has {len(self)} inputs; npukit does not read number {place}")


def refuse_unread(table: Any, read: Collection[str], place: str) -> None:
    """Raises an error for a field outside `read` without its default value."""
    kind = type(table)
    for name in accessors(kind):
        unread = _field(name) not in read and not name.endswith(("AsNumpy", "IsNone"))
        if unread and _value(table, name) != getattr(_empty(kind), name)():
            raise NpukitError(f"{place} set {_field(name)}, which npukit does not read")
    inside = table._tab
    vtable = inside.Pos - inside.Get(SOffsetTFlags, inside.Pos)
    slots = range(_slots_of(kind), (inside.Get(VOffsetTFlags, vtable) - FIRST_SLOT) // SLOT_BYTES)
    newer = [slot for slot in slots if table._tab.Offset(FIRST_SLOT + SLOT_BYTES * slot)]
    if newer:
        raise NpukitError(f"{place} set field {newer[0]} of {kind.__name__}, which npukit does not know")


@cache
def accessors(kind: type) -> tuple[str, ...]:
    """Accessors without arguments: of scalars, of tables, and of vectors as length and as numpy array."""
    members = ((name, getattr(member, "__code__", None)) for name, member in vars(kind).items() if name[0].isupper())
    return tuple(name for name, code in members if code is not None and code.co_argcount == 1)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _value(table: Any, name: str) -> Any:
    value = getattr(table, name)()
    if name in ENUMERATIONS and value not in vars(ENUMERATIONS[name]).values():
        raise NpukitError(f"its {name} is {value}, which TFLite does not define")
    return value


def _field(name: str) -> str:
    """The name of an accessor's field."""
    for suffix in VECTOR:
        name = name.removesuffix(suffix)
    return name


@cache
def _empty(kind: type) -> Any:
    """A table without any field set."""
    builder = flatbuffers.Builder(16)
    builder.StartObject(0)
    builder.Finish(builder.EndObject())
    return kind.GetRootAs(builder.Output())  # type: ignore[attr-defined]


class _Slots:
    """A stand-in for a flatbuffer builder. Counts the fields of a table."""

    count = 0

    def StartObject(self, count: int) -> None:  # noqa: N802 - flatbuffers' name
        self.count = count


@cache
def _slots_of(kind: type) -> int:
    slots = _Slots()
    getattr(tflite, f"{kind.__name__}Start")(slots)
    return slots.count
