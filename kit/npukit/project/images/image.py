"""Images: what runs on the PEs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Overlay:
    """Bytes that one PE has in place of its image's: its share of the data."""

    pe: int
    address: int
    data: bytes


@dataclass(frozen=True)
class Image:
    """One program, and the PEs that run it."""

    elf: Path
    pes: tuple[int, ...]
    overlays: tuple[Overlay, ...] = ()
