"""Names by which an importer says, and quantisation sees, which values are to have one scale."""

from __future__ import annotations

import re

_ALIKE = "alike_"


def alike(what: str) -> str:
    """The name of a value; all values of that name, whatever number is added to it, are to have one scale."""
    return f"{_ALIKE}{what}_"


def group(name: str) -> str | None:
    """The group of values that are to have one scale."""
    return re.sub(r"[_\d]*$", "", name) if name.startswith(_ALIKE) else None
