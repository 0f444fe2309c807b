"""What the code generator hands to the project: the C of one program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npukit.codegen.streamed import Piece


@dataclass(frozen=True)
class Sources:
    """One role's program: the files of `project/net/`, by name, and the firmware files it needs besides.

    `constant_bytes` and `activation_bytes` are the sizes of the sections `.constants` and `.activations`, to the byte.
    """

    role: int
    pes: tuple[int, ...]
    files: Mapping[str, str]
    drivers: tuple[Path, ...]
    constant_bytes: int
    activation_bytes: int
    wrappers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """For each function that a plug-in's driver must have, an op that calls it and the plug-in."""
    streamed: tuple[Piece, ...] = ()
    """Constants of its tiles that lie in DRAM; PEs may have the same."""
