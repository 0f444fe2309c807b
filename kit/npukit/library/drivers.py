"""The drivers of a library's accelerators, with what they include: sources in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from npukit.board.board import Board
from npukit.codegen.program import Program
from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.net.net import CORE

FOLDER = "drivers"
HOOKS = "include/accelerator.h"
"""The hooks of the firmware around a driver."""
EVENTS = "core_events.h"
"""The header with the work of the hooks themselves, in the folder of a family of cores."""


def drivers_of(program: Program, board: Board) -> dict[str, str]:
    """The C of each accelerator that the program uses and the headers beside it, by name; no two may have one name."""
    used = {part.engine.name: part.engine for part in program.parts if part.engine.name != CORE}
    sources = [source for engine in used.values() for source in engine.sources(board)]
    found: dict[str, Path] = {}
    hooks = (HOOKS, f"{board.core.type.architecture.firmware}/{EVENTS}")
    beside = (data_folder("firmware") / hook for hook in hooks) if sources else ()
    for path in dict.fromkeys((*beside, *_with_headers(sources))):
        if path.name in found:
            raise NpukitError(f"two drivers bring {path.name}: {found[path.name]} and {path}", tries=["other names"])
        found[path.name] = path
    return {f"{FOLDER}/{name}": path.read_text(encoding="utf-8") for name, path in found.items()}


def _with_headers(sources: Iterable[Path]) -> Iterable[Path]:
    for source in sources:
        yield source
        yield from sorted(source.parent.glob("*.h"))
