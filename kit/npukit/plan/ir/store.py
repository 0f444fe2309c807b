"""Plans as files: the text of `ir/text.py`, which reads back to an equal plan."""

from __future__ import annotations

from pathlib import Path

from npukit.errors import NpukitError
from npukit.plan.ir.parse import parse_plan
from npukit.plan.ir.plan import Plan
from npukit.plan.ir.text import print_plan

MOST_BYTES = 64 << 20
"""The most bytes of a plan's file."""


def save_plan(plan: Plan, path: Path) -> None:
    path.write_text(print_plan(plan), encoding="utf-8", newline="\n")


def load_plan(path: Path) -> Plan:
    if path.stat().st_size > MOST_BYTES:
        raise NpukitError(f"plan {path} has {path.stat().st_size:,} bytes; npukit reads {MOST_BYTES:,}")
    try:
        return parse_plan(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise NpukitError(f"plan {path} is wrong: it is no text") from error
    except NpukitError as error:
        raise NpukitError(f"plan {path} is wrong: {error.message}") from error
