"""Plans as files: JSON that a person can read, and that reads back to an equal plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import is_dataclass
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.plan.ir.plan import Plan

LINE = 140
MOST_BYTES = 256 << 20
"""The most bytes of a plan's file: that of the digits network on each of 152 PEs has 5.2 MB."""

_PLAN = TypeAdapter(Plan)


def save_plan(plan: Plan, path: Path) -> None:
    path.write_text(_Writer().text(plan) + "\n")


def load_plan(path: Path) -> Plan:
    if path.stat().st_size > MOST_BYTES:
        raise NpukitError(f"plan {path} has {path.stat().st_size:,} bytes; npukit reads {MOST_BYTES:,}")
    try:
        return _PLAN.validate_json(path.read_bytes())
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the file"
        raise NpukitError(f"plan {path} is wrong: {where}: {fault['msg']}") from error


class _Writer:
    """JSON in which whatever fits a line is on one. Boxes, of which a plan has far more than different ones, are
    written once."""

    def __init__(self) -> None:
        self._boxes: dict[int, str] = {}

    def text(self, value: Any, indent: str = "") -> str:
        kind = type(value)
        if kind is int:
            return str(value)
        if kind is str:
            return encode_basestring_ascii(value)
        if kind is Box:
            return self._boxes.get(id(value)) or self._box(value, indent)
        if kind is tuple:
            inner = indent + "  "
            return _joined([self.text(item, inner) for item in value], "[", "]", indent)
        return self._fields(value, indent) if is_dataclass(value) else json.dumps(value)

    def _box(self, box: Box, indent: str) -> str:
        text = self._fields(box, indent)
        if "\n" not in text:
            self._boxes[id(box)] = text
        return text

    def _fields(self, value: Any, indent: str) -> str:
        inner = indent + "  "
        items = [f'"{name}": {self.text(getattr(value, name), inner)}' for name in value.__dataclass_fields__]
        return _joined(items, "{", "}", indent)


def _joined(items: Sequence[str], left: str, right: str, indent: str) -> str:
    flat = f"{left}{', '.join(items)}{right}"
    if not items or (len(indent) + len(flat) <= LINE and "\n" not in flat):
        return flat
    inner = indent + "  "
    return f"{left}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{right}"
