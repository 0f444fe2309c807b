"""Budgets for work on files of strangers: memory and processor time, enforced by the kernel."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import ceil, isfinite

from npukit.errors import NpukitError

LIMITS_VARIABLE = "NPUKIT_LIMITS"
TRUSTED = f"if you trust it, set {LIMITS_VARIABLE}: {LIMITS_VARIABLE}=4 allows four times as much of everything"
MEMORY_A_BYTE = 64
"""Bytes of memory for each byte read. The plan of 304 PEs takes 50 (digits for `pe-mesh-7296`, throughput)."""
BYTES_A_SECOND = 100_000
"""Bytes read in a second of processor time. The same plan is read at 500,000 bytes a second."""


@dataclass(frozen=True)
class Budget:
    """Bytes of memory and seconds of processor time, without the part for the size of the input."""

    memory: int
    seconds: int

    def of(self, size: int) -> Budget:
        """The budget for an input of `size` bytes."""
        more = Budget(self.memory + MEMORY_A_BYTE * size, self.seconds + size // BYTES_A_SECOND)
        return Budget(int(more.memory * factor()), ceil(more.seconds * factor()))


MODEL = Budget(4 << 30, 3600)
"""Import of a model, calibration included: a second line behind the limits of `net/limits.py`."""
BUILD = Budget(512 << 20, 30)
"""Reading of a part of a build folder: manifest, net, plan, code of an image, or table of contents of an npz file."""
ARCHIVE = Budget(256 << 20, 60)
"""Unpacking of a client's build folder, written in pieces, 2 GB at most."""
EMULATOR = 8 << 30
"""Bytes of memory of an emulator for a stranger's build; for the built-in emulator, without the board's memories. Time
is limited for each answer."""
MOST_FILE = 2 << 30
"""Bytes of a file that work within a budget may write."""


def factor() -> float:
    """The factor by which the user multiplies all limits and budgets."""
    given = os.environ.get(LIMITS_VARIABLE, "1")
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not (isfinite(found) and found > 0):
        raise NpukitError(
            f"{LIMITS_VARIABLE} is {given!r}, not a number above 0", tries=[f"set {LIMITS_VARIABLE}=4, or not at all"]
        )
    return found
