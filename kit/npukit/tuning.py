"""What tuning found: how loops that TVM schedules run fastest, by kernel, shape and core. Builds look here.

The file is JSON and may be copied, shared, and merged: of two findings for one kernel the faster one stays.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError

FORMAT = 1
VARIABLE = "NPUKIT_TUNED"


@dataclass(frozen=True)
class Blocking:
    """How the loops of a sum are arranged: `factor` neighbours are summed side by side, `unroll` terms are written out.

    Neighbours along the innermost loop around the sum, or along the `axis`-th outside it. The order in which each sum
    is taken never changes, so neither does a bit of it.
    """

    axis: int = 0
    factor: int = 1
    unroll: int = 1

    def __str__(self) -> str:
        return f"{self.factor} sums side by side along loop {self.axis}, {self.unroll} terms a turn"


AS_WRITTEN = Blocking()


@dataclass(frozen=True)
class Finding:
    """The best blocking of a kernel, what it costs and what the unblocked one does: cycles, or instructions.

    `tried` are the blockings that were measured, so that nobody measures them again.
    """

    kernel: str
    blocking: Blocking
    cost: int
    before: int
    tried: tuple[Blocking, ...] = ()


@dataclass(frozen=True)
class Database:
    """Findings by key."""

    findings: Mapping[str, Finding]

    def merged(self, other: Database) -> Database:
        found = dict(self.findings)
        for key, theirs in other.findings.items():
            ours = found.get(key)
            found[key] = _better(ours, theirs) if ours else theirs
        return Database(found)

    def save(self, path: Path) -> None:
        """Whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"format": FORMAT, "findings": {key: asdict(each) for key, each in sorted(self.findings.items())}}
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as scratch:
            scratch.write(json.dumps(told, indent=1) + "\n")
        os.replace(scratch.name, path)


def _better(ours: Finding, theirs: Finding) -> Finding:
    best = theirs if theirs.cost < ours.cost else ours
    return replace(best, tried=tuple(dict.fromkeys((*ours.tried, *theirs.tried))))


def default_path() -> Path:
    """Where builds look: `$NPUKIT_TUNED`, or a file in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(VARIABLE) or cache / "npukit/tuned.json")


def load_database(path: Path) -> Database:
    """An empty one if there is no file."""
    if not path.is_file():
        return Database({})
    try:
        told = json.loads(path.read_text())
        if told["format"] != FORMAT:
            raise ValueError(f"its format is {told['format']}, not {FORMAT}")
        return Database({key: _finding(each) for key, each in told["findings"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NpukitError(
            f"{path} is not a file of tuning results: {error}", tries=[f"remove it, or set {VARIABLE} to another file"]
        ) from error


def _finding(told: dict[str, Any]) -> Finding:
    tried = tuple(Blocking(**each) for each in told["tried"])
    blocking = Blocking(**told["blocking"])
    numbers = (blocking, *tried)
    if not all(isinstance(n, int) and n >= 0 for b in numbers for n in (b.axis, b.factor, b.unroll)):
        raise ValueError("a blocking is not three whole numbers")
    return Finding(str(told["kernel"]), blocking, int(told["cost"]), int(told["before"]), tried)


@dataclass
class Trial:
    """While it is open, kernels take the blocking that `choices` or else `default` says, and leave names and code."""

    choices: Mapping[str, Blocking]
    default: Blocking
    names: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    """By key."""


_trial: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def trial(choices: Mapping[str, Blocking], default: Blocking = AS_WRITTEN) -> Iterator[Trial]:
    """Blockings to try instead of what the database says."""
    opened = Trial(choices, default)
    token = _trial.set(opened)
    try:
        yield opened
    finally:
        _trial.reset(token)


def blocking_of(key: str, kernel: str) -> Blocking:
    """How the kernel's loops are to be arranged."""
    opened = _trial.get()
    if opened is not None:
        opened.names[key] = kernel
        return opened.choices.get(key, opened.default)
    found = load_database(default_path()).findings.get(key)
    return found.blocking if found else AS_WRITTEN


def note(key: str, code: str) -> None:
    """What became of a kernel, for whoever tries blockings."""
    opened = _trial.get()
    if opened is not None:
        opened.code[key] = code
