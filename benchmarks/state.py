"""The version of npukit that produced a figure."""

from __future__ import annotations

import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """The checked-out commit, with " and changes" if kit, firmware, templates or boards differ from it."""
    changed = _git("status", "--porcelain", "--", "kit", "firmware", "templates", "boards")
    return _git("rev-parse", "--short=7", "HEAD") + (" and changes" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
