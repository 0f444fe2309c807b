"""Images: the programs of PEs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Overlay:
    """Own data of a PE, in place of the image's bytes at `address`."""

    pe: int
    address: int
    data: bytes


@dataclass(frozen=True)
class Image:
    """A program, with the PEs for it."""

    elf: Path
    pes: tuple[int, ...]
    overlays: tuple[Overlay, ...] = ()
