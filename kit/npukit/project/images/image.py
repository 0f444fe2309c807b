"""Images: the programs of PEs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Overlay:
    """Bytes of own data that replace the image's on one PE."""

    pe: int
    address: int
    data: bytes


@dataclass(frozen=True)
class Image:
    """A program and its PEs."""

    elf: Path
    pes: tuple[int, ...]
    overlays: tuple[Overlay, ...] = ()
