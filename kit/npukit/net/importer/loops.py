"""Kernels that TVM compiles for ops without an integer form: data form, tuning records and generated code.

While `scheduling` is open, kernels use their tuned arrangements, and their sources are recorded for tuning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from npukit.errors import NpukitError, first_line
from npukit.net.net import Net
from npukit.net.ops import RowReads, TvmCode
from npukit.tuning import NOTHING_FOUND, Database

FILE = "loops.json"


Parameter: TypeAlias = tuple[str, tuple[int, ...]]
"""Type and shape of a tensor."""
_Place: TypeAlias = Annotated[int, Field(ge=0)]
_Types: TypeAlias = Literal["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32"]
Operand: TypeAlias = (
    _Place | list[_Place] | dict[Literal["shape"], list[int]] | dict[_Types | Literal["number"], bool | int | float]
)
"""An operand: the number of a value or a list of numbers, parameters first; a shape; a scalar tensor by type; or a
plain number."""
Single: TypeAlias = bool | int | float | str | None
Attribute: TypeAlias = Single | list[Single]


@dataclass(frozen=True)
class Step:
    """A call of a TVM operator. `form`: type of its attributes, or None."""

    operator: str
    operands: tuple[Operand, ...]
    form: str | None
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True)
class LoopKernel:
    """A function that TVM lowers to loops. `name`: for people. `layers`: the ops computed by the kernel. The last step
    is the result."""

    name: str
    parameters: tuple[Parameter, ...]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]
    layers: tuple[str, ...] = ()


_KERNELS: TypeAdapter[dict[str, LoopKernel]] = TypeAdapter(dict[str, LoopKernel])


@dataclass(frozen=True)
class LoopsInC:
    """The body of a C function with parameters p0, p1, ..., output and, if `work_bytes` is not 0, work. `cycles`,
    `loop`, `rows`: those of `TvmCode`."""

    body: str
    work_bytes: int
    cycles: int
    loop: int = 0
    rows: tuple[RowReads, ...] = ()


@dataclass
class Scheduling:
    """The board and its tuning records; by key, the recorded kernels and their code."""

    board: str
    database: Database
    kernels: dict[str, LoopKernel] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    own: Sequence[Callable[[Any], Any]] = ()
    """Loop passes of plug-ins."""
    made: dict[str, LoopsInC] = field(default_factory=dict)
    """The code of each Relax function, by the function's JSON form."""

    def arrangement(self, key: str) -> LoopArrangement:
        choice = self.database.choice(key)
        return arrangement_of(choice) if choice else AS_WRITTEN

    def kernels_of(self, net: Net) -> dict[str, LoopKernel]:
        """The kernels of the net, each with the names of its layers."""
        layers: dict[str, list[str]] = {}
        for op in net.ops:
            if isinstance(op.attributes, TvmCode):
                layers.setdefault(op.attributes.code, []).append(op.name)
        computed = {key: layers[code] for key, code in self.code.items() if code in layers}
        return {key: replace(self.kernels[key], layers=tuple(names)) for key, names in computed.items()}


_open: ContextVar[Scheduling | None] = ContextVar("scheduling", default=None)


@contextmanager
def scheduling(board: str, database: Database, own: Sequence[Callable[[Any], Any]] = ()) -> Iterator[Scheduling]:
    opened = Scheduling(board, database, own=own)
    token = _open.set(opened)
    try:
        yield opened
    finally:
        _open.reset(token)


def current() -> Scheduling:
    """The open scheduling, or an empty one without a board."""
    return _open.get() or Scheduling("", NOTHING_FOUND)


def save_kernels(kernels: Mapping[str, LoopKernel], folder: Path) -> None:
    """Write the kernels to a folder. No file if there are none."""
    if kernels:
        told = {key: asdict(kernel) for key, kernel in sorted(kernels.items())}
        (folder / FILE).write_text(json.dumps(told) + "\n", encoding="utf-8", newline="\n")


def load_kernels(folder: Path) -> dict[str, LoopKernel]:
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        return _KERNELS.validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NpukitError(f"{path} cannot be read: {first_line(error)}", tries=["build again"]) from error


TILES, _APART = "tiles", " on arrays made before"
_NEST = r"(?:-|[1-9]\d*(?:x[1-9]\d*)*)/[1-9]\d*(?:x[1-9]\d*)*"
_TILED = re.compile(rf"{TILES}((?: {_NEST})+)({_APART})?")
_SPELLED = re.compile(r"(\d+) sums side by side along loop (\d+), (\d+) terms a turn(?:, (\d+) rows along loop (\d+))?")


@dataclass(frozen=True)
class Nest:
    """Innermost turns of a sum: those split off from each loop around it, and from each loop over terms."""

    inside: tuple[int, ...]
    terms: tuple[int, ...]


@dataclass(frozen=True)
class Blocking:
    """Equal blocking of all sums: `factor` neighbouring sums side by side, `unroll` terms unrolled. Neighbours lie
    along the loop around the sum with index `axis`, counted from the innermost. `rows` neighbours along loop `across`
    share loaded values. A loop whose extent is not divisible stays as it is."""

    axis: int = 0
    factor: int = 1
    unroll: int = 1
    across: int = 0
    rows: int = 1
    apart = False

    def nest(self, number: int, around: Sequence[int], over: Sequence[int]) -> Nest:
        del number
        inside, terms = [1] * len(around), [1] * len(over)
        for axis, factor in ((self.across, self.rows), (self.axis, self.factor)):
            if axis < len(around) and around[-1 - axis] % factor == 0 and factor > 1:
                inside[-1 - axis] = factor
        if over[-1] % self.unroll == 0:
            terms[-1] = self.unroll
        return Nest(tuple(inside), tuple(terms))

    def __str__(self) -> str:
        rows = f", {self.rows} rows along loop {self.across}" if self.rows > 1 else ""
        return f"{self.factor} sums side by side along loop {self.axis}, {self.unroll} terms a turn{rows}"

    @classmethod
    def parse(cls, text: str) -> Blocking:
        if (match := _SPELLED.fullmatch(text)) is None:
            raise _unreadable(text)
        factor, axis, unroll, rows, across = (int(number) if number else 0 for number in match.groups())
        return cls(axis, factor, unroll, across, rows or 1)


AS_WRITTEN = Blocking()


@dataclass(frozen=True)
class Tiling:
    """Separate tiling of each sum, found by TVM's MetaSchedule: `tiles 1x5x1x8/1x4 1x16/1 on arrays made before`."""

    sums: tuple[Nest, ...]
    apart: bool = False

    def nest(self, number: int, around: Sequence[int], over: Sequence[int]) -> Nest:
        found = self.sums[number] if number < len(self.sums) else None
        if found is None or not (_fits(found.inside, around) and _fits(found.terms, over) and _in_order(found, over)):
            raise _unreadable(str(self))
        return found

    def __str__(self) -> str:
        sums = " ".join(f"{_times(nest.inside)}/{_times(nest.terms)}" for nest in self.sums)
        return f"{TILES} {sums}{_APART if self.apart else ''}"

    @classmethod
    def parse(cls, text: str) -> Tiling:
        if (match := _TILED.fullmatch(text)) is None:
            raise _unreadable(text)
        pairs = [part.split("/") for part in match[1].split()]
        return cls(tuple(Nest(_factors(inside), _factors(terms)) for inside, terms in pairs), bool(match[2]))


LoopArrangement: TypeAlias = Blocking | Tiling
"""The arrangement of a kernel's loops. All arrangements keep the order of terms, so results are equal.

`apart`: a sum's operands, unless cheap, are computed into arrays before the sum. `nest`: the nest of a sum for
the extents of the loops around the sum and over its terms.
"""


def arrangement_of(choice: str) -> LoopArrangement:
    """The arrangement named by a tuning record."""
    return Tiling.parse(choice) if choice.startswith(f"{TILES} ") else Blocking.parse(choice)


def _fits(factors: Sequence[int], loops: Sequence[int]) -> bool:
    return len(factors) == len(loops) and not any(size % turns for turns, size in zip(factors, loops, strict=True))


def _in_order(nest: Nest, over: Sequence[int]) -> bool:
    """True if terms keep their order: all loops inside a split loop over terms must be innermost entirely."""
    split = next((place for place, turns in enumerate(nest.terms) if turns > 1), len(over))
    return all(turns == size for turns, size in list(zip(nest.terms, over, strict=True))[split + 1 :])


def _times(factors: Sequence[int]) -> str:
    return "x".join(map(str, factors)) or "-"


def _factors(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split("x")))


def _unreadable(choice: str) -> NpukitError:
    return NpukitError(f"{choice!r} is no arrangement of these loops", tries=["remove the file of tuning results"])
