"""Plans as files: JSON that a person can read, and that reads back to an equal plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from npukit.errors import NpukitError
from npukit.plan.plan import Plan

LINE = 140

_PLAN = TypeAdapter(Plan)


def save_plan(plan: Plan, path: Path) -> None:
    path.write_text(_readable(_PLAN.dump_python(plan, mode="json")) + "\n")


def load_plan(path: Path) -> Plan:
    try:
        return _PLAN.validate_json(path.read_bytes())
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise NpukitError(f"plan {path} is wrong: {where}: {fault['msg']}") from error


def _readable(value: Any, indent: str = "") -> str:
    """JSON in which whatever fits a line is on one."""
    flat = json.dumps(value)
    if len(indent) + len(flat) <= LINE or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {_readable(item, inner)}" for key, item in value.items()]
        left, right = "{", "}"
    else:
        items = [_readable(item, inner) for item in value]
        left, right = "[", "]"
    return f"{left}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{right}"
