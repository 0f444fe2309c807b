"""The loops that TVM schedules for what has no integer op: how they are blocked, and what tuning needs to know of them.

While `scheduling` is open, kernels take the blocking that tuning found for them and leave what they were made from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.tuning import NOTHING_FOUND, Database

FILE = "loops.json"
_SPELLED = re.compile(r"(\d+) sums side by side along loop (\d+), (\d+) terms a turn(?:, (\d+) rows along loop (\d+))?")


@dataclass(frozen=True)
class Blocking:
    """How the loops of a sum are arranged: `factor` neighbours are summed side by side, `unroll` terms are written out.

    Neighbours along the innermost loop around the sum, or along the `axis`-th outside it; `rows` of them along the
    `across`-th, which share what each loads. The order in which each sum is taken never changes, so neither does a bit
    of it.
    """

    axis: int = 0
    factor: int = 1
    unroll: int = 1
    across: int = 0
    rows: int = 1

    def __str__(self) -> str:
        rows = f", {self.rows} rows along loop {self.across}" if self.rows > 1 else ""
        return f"{self.factor} sums side by side along loop {self.axis}, {self.unroll} terms a turn{rows}"

    @classmethod
    def parse(cls, text: str) -> Blocking:
        match = _SPELLED.fullmatch(text)
        if match is None:
            raise NpukitError(f"{text!r} is no blocking of loops", tries=["remove the file of tuning results"])
        factor, axis, unroll, rows, across = (int(number) if number else 0 for number in match.groups())
        return cls(axis, factor, unroll, across, rows or 1)


AS_WRITTEN = Blocking()


@dataclass(frozen=True)
class Kernel:
    """A kernel as TVM gets it: its name, and the Relax function in TVM's JSON. `layers` are the ops it computes."""

    name: str
    relax: str
    layers: tuple[str, ...] = ()


@dataclass
class Scheduling:
    """For which board, with which findings; then the kernels and the code that they became, by key."""

    board: str
    database: Database
    kernels: dict[str, Kernel] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)

    def blocking(self, key: str) -> Blocking:
        choice = self.database.choice(key)
        return Blocking.parse(choice) if choice else AS_WRITTEN

    def kernels_of(self, net: Net) -> dict[str, Kernel]:
        """The kernels that compute layers of the net."""
        found: dict[str, Kernel] = {}
        for key, kernel in self.kernels.items():
            code = self.code[key]
            layers = [op.name for op in net.ops if isinstance(op.attributes, TvmCode) and op.attributes.code == code]
            if layers:
                found[key] = Kernel(kernel.name, kernel.relax, tuple(layers))
        return found


_open: ContextVar[Scheduling | None] = ContextVar("scheduling", default=None)


@contextmanager
def scheduling(board: str, database: Database) -> Iterator[Scheduling]:
    opened = Scheduling(board, database)
    token = _open.set(opened)
    try:
        yield opened
    finally:
        _open.reset(token)


def current() -> Scheduling:
    """What is open, or no findings for no board."""
    return _open.get() or Scheduling("", NOTHING_FOUND)


def save_kernels(kernels: Mapping[str, Kernel], folder: Path) -> None:
    """No file if there are none."""
    if kernels:
        told = {key: asdict(kernel) for key, kernel in sorted(kernels.items())}
        (folder / FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def load_kernels(folder: Path) -> dict[str, Kernel]:
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {key: Kernel(str(k["name"]), str(k["relax"]), tuple(k["layers"])) for key, k in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NpukitError(f"{path} cannot be read: {error}", tries=["build again"]) from error
