"""Tuning records: the best choice for a kernel or a network, by kernel, shapes and board. Builds look here.

The file is JSON, and can be copied, shared and merged. Of two records with the same key, the faster stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from npukit.errors import NpukitError
from npukit.writing import told_if_unwritable, write_file

FORMAT = 3
TUNED_VARIABLE = "NPUKIT_TUNED"


@dataclass(frozen=True)
class TuningRecord:
    """The best choice for a key, with its cost and the cost of npukit's own choice, both in cycles or in instructions.
    `what`: the title for human readers. `tried`: the choices measured so far, which are not measured again."""

    what: str
    choice: str
    cost: int
    before: int
    tried: tuple[str, ...] = ()


@dataclass(frozen=True)
class Database:
    """Tuning records by key."""

    records: Mapping[str, TuningRecord]

    def choice(self, key: str) -> str | None:
        """The best known choice, or None."""
        found = self.records.get(key)
        return found.choice if found else None

    def merged(self, other: Database) -> Database:
        found = dict(self.records)
        for key, theirs in other.records.items():
            ours = found.get(key, theirs)
            best = theirs if theirs.cost < ours.cost else ours
            found[key] = replace(best, tried=tuple(dict.fromkeys((*ours.tried, *theirs.tried))))
        return Database(found)

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        with told_if_unwritable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        told = {"format": FORMAT, "records": {key: asdict(each) for key, each in sorted(self.records.items())}}
        write_file(path, json.dumps(told, indent=1) + "\n")


NOTHING_FOUND = Database({})


def default_path() -> Path:
    """The file where builds look for records: `$NPUKIT_TUNED`, or a file in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get(TUNED_VARIABLE) or cache / "npukit/tuned.json")


def load_database(path: Path) -> Database:
    """Read a database. A missing file is an empty database."""
    if not path.is_file():
        return NOTHING_FOUND
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise ValueError(f"its format is {told['format']}, not {FORMAT}")
        return Database({key: _record(each) for key, each in told["records"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NpukitError(
            f"{path} is not a file of tuning results: {error}",
            tries=[f"remove it, or set {TUNED_VARIABLE} to another file"],
        ) from error


def _record(told: dict[str, Any]) -> TuningRecord:
    what, choice, *tried = (told["what"], told["choice"], *told["tried"])
    if not all(isinstance(text, str) for text in (what, choice, *tried)):
        raise ValueError("a choice is not a text")
    return TuningRecord(what, choice, int(told["cost"]), int(told["before"]), tuple(tried))
