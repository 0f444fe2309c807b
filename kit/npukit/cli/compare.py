"""Two benches side by side."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npukit.errors import NpukitError

if TYPE_CHECKING:
    from npukit.measure.bench import Bench

_TOTALS = ("latency_cycles", "interval_cycles", "instructions")


@dataclass(frozen=True)
class ComparedFigure:
    """A figure of both benches; None for a bench without it."""

    name: str
    old: int | None
    new: int | None

    @property
    def change(self) -> float | None:
        """Change relative to the old figure."""
        return self.new / self.old - 1 if self.old and self.new is not None else None


def load_bench(path: Path) -> dict[str, Any]:
    """Load the JSON output of `npukit bench --json`."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        assert {"layers", *_TOTALS} <= told.keys()
    except (OSError, ValueError, AttributeError, AssertionError) as error:
        raise NpukitError(
            f"{path} is not what npukit bench --json printed", tries=[f"npukit bench BUILD --json > {path.name}"]
        ) from error
    return told


def compared(old: dict[str, Any], new: Bench) -> list[ComparedFigure]:
    """Layers of both benches, in the new one's order, then the totals."""
    before = {layer["name"]: layer["cycles"] for layer in old["layers"]}
    after = {layer.name: layer.cycles for layer in new.layers}
    layers = [ComparedFigure(name, before.get(name), after.get(name)) for name in dict.fromkeys((*after, *before))]
    return layers + [ComparedFigure(name.replace("_", " "), old[name], getattr(new, name)) for name in _TOTALS]
