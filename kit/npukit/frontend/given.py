"""Ops whose C is one of `templates/ops`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tvm import relax

from npukit.data import data_folder
from npukit.net.importer.given import Words, call_of

tensor_type: Any = relax.TensorType


@cache
def text_of(file: str) -> str:
    """The C of one of `templates/ops`."""
    return (data_folder("templates") / "ops" / file).read_text(encoding="utf-8")


def made_by(
    builder: relax.BlockBuilder,
    file: str,
    operands: Sequence[Any],
    result: tuple[tuple[int, ...], str],
    words: Words | None = None,
    work_bytes: int = 0,
) -> relax.Var:
    """The result, of this shape and type, of the C of a file of `templates/ops`."""
    name = file.rpartition("/")[2].removesuffix(".c")
    return builder.emit(call_of(name, text_of(file), operands, tensor_type(*result), words, work_bytes))
