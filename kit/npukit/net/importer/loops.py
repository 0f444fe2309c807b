"""The kernels that TVM makes of what has no integer op: the findings they take, and what tuning needs to know of them.

While `scheduling` is open, kernels take the arrangement that tuning found for them and leave what they were made from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path

from npukit.errors import NpukitError
from npukit.net.importer.arrangements import AS_WRITTEN, Arrangement, arrangement_of
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.tuning import NOTHING_FOUND, Database

FILE = "loops.json"


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

    def arrangement(self, key: str) -> Arrangement:
        choice = self.database.choice(key)
        return arrangement_of(choice) if choice else AS_WRITTEN

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
