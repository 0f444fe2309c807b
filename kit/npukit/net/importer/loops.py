"""Kernels that TVM compiles for ops without an integer form: data form, tuning records and generated code.

While `scheduling` is open, kernels use their tuned arrangements, and their sources are recorded for tuning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from npukit.errors import NpukitError, first_line
from npukit.net.importer.arrangements import AS_WRITTEN, LoopArrangement, arrangement_of
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
