"""A TFLite model with some fields changed: valid flatbuffers with meaningless content."""

from __future__ import annotations

import random
from typing import Any

import flatbuffers
import numpy as np

from fuzz.models.mutate import ODD_NAMES, ODD_NUMBERS, damaged

try:
    from ai_edge_litert import schema_py_generated
except ImportError:
    tables: Any = None
else:
    tables = schema_py_generated

NAN, INFINITY = float("nan"), float("inf")
NEAR = (-2, -1, 1, 2, 3)
ODD_SCALES = (0.1, 1.0, 100.0, 1e4, 1e7, 1e12, 1e-6, 1e-12, 3e38, 1e-38)


def damaged_tflite(data: bytes, dice: random.Random) -> bytes:
    """Mostly change fields; change bytes without the LiteRT package, which writes the tables."""
    if tables is None or dice.random() < 0.3:
        return damaged(data, dice)
    model = tables.ModelT.InitFromObj(tables.Model.GetRootAs(data))
    for _ in range(dice.randint(1, 3)):
        _change(dice.choice(_tables(model.subgraphs[0])), dice)
    builder = flatbuffers.Builder(len(data))
    try:
        builder.Finish(model.Pack(builder), b"TFL3")
    except Exception:  # a number outside the range of its field
        return damaged(data, dice)
    return bytes(builder.Output())


def _tables(table: Any) -> list[Any]:
    """A table and all tables inside."""
    found = [table]
    for value in vars(table).values():
        for part in value if isinstance(value, list) else [value]:
            found += _tables(part) if hasattr(part, "Pack") else []
    return found


def _change(table: Any, dice: random.Random) -> None:
    fields = [name for name in vars(table) if not name.endswith("Type") or dice.random() < 0.1]
    if fields:
        name = dice.choice(fields)
        setattr(table, name, _other(getattr(table, name), name, dice))


def _other(value: Any, name: str, dice: random.Random) -> Any:
    if isinstance(value, np.ndarray) and value.size:
        changed = value.copy()
        place = dice.randrange(value.size)
        changed[place] = _number(changed[place].item(), name, dice, value.dtype)
        return changed if dice.random() < 0.8 else changed[: dice.randrange(value.size + 1)]
    if isinstance(value, list) and value:
        place = dice.randrange(len(value))
        return [*value[:place], *([value[place]] * dice.choice((0, 2))), *value[place + 1 :]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, bytes | str):
        return dice.choice(ODD_NAMES)
    return _number(value, name, dice, None) if isinstance(value, int | float) else None


def _number(value: Any, name: str, dice: random.Random, dtype: Any) -> Any:
    if isinstance(value, float):
        return dice.choice(ODD_SCALES if name == "scale" else (0.0, -1.0, NAN, INFINITY, value * 2, -value, 100.0))
    number = value + dice.choice(NEAR) if dice.random() < 0.7 else dice.choice(ODD_NUMBERS)
    if dtype is not None:
        limits = np.iinfo(dtype)
        return min(max(number, limits.min), limits.max)
    return number
