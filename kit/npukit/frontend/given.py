"""Calls of ops written in C: the templates in `templates/ops`, or C from the user."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tvm import relax

from npukit.errors import NpukitError, nearest
from npukit.net.c_code.function import Words, text_of
from npukit.net.c_code.rows import NO_STEPS, Steps
from npukit.net.importer.given import call_of

tensor_type: Any = relax.TensorType


def made_by(
    builder: relax.BlockBuilder,
    file: str,
    operands: Sequence[Any],
    result: tuple[tuple[int, ...], str],
    words: Words | None = None,
    work_bytes: int = 0,
    *,
    steps: Steps = NO_STEPS,
) -> relax.Var:
    """The result of a C template in `templates/ops`, with the shape and type in `result`."""
    name = file.rpartition("/")[2].removesuffix(".c")
    call = call_of(name, text_of(file), operands, tensor_type(*result), words, work_bytes, steps=steps)
    return builder.emit(call)


def ops_of(model: str, custom: Mapping[str, str], there: Collection[str]) -> list[str]:
    """The ops with C from the user. Raises an error for an op missing in `there`, the ops of the model. The keys of
    `custom` are `NAME` for an op's first result and `NAME:1` for its second."""
    names = list(dict.fromkeys(re.sub(r":\d+$", "", name) for name in custom))
    unknown = next((name for name in names if name not in there), None)
    if unknown is not None:
        known = "its ops are: " + ", ".join(sorted(there)) if there else "custom ops are those of TFLite and ONNX files"
        raise NpukitError(f"{model} has no op {unknown!r}", tries=[*nearest(unknown, there), known])
    return names


def c_of(custom: Mapping[str, str], op: str, result: int) -> str:
    """The user's C for a result of an op, counted from 0."""
    if (name := f"{op}:{result}" if result else op) not in custom:
        raise NpukitError(f"there is no C for its result {result}", tries=[f"--custom {name}=FILE.c"])
    return custom[name]
