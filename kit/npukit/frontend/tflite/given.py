"""Ops of a TFLite file that are C here: those of `templates/ops`, and custom ops for which a user has C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from tvm import relax

from npukit.data import data_folder
from npukit.errors import NpukitError
from npukit.frontend.tflite.elementwise import Converter
from npukit.frontend.tflite.emit import Emitter, tensor_type
from npukit.frontend.tflite.model import TfliteOp, custom_kind, options_of
from npukit.net.importer.given import Words, call_of


@cache
def text_of(file: str) -> str:
    """The C of one of `templates/ops`."""
    return (data_folder("templates") / "ops" / file).read_text(encoding="utf-8")


def made_by(
    emitter: Emitter,
    file: str,
    operands: Sequence[Any],
    result: tuple[tuple[int, ...], str],
    words: Words | None = None,
    work_bytes: int = 0,
) -> relax.Var:
    """The result, of this shape and type, of the C of a file of `templates/ops`."""
    name = file.rpartition("/")[2].removesuffix(".c")
    return emitter.emit(call_of(name, text_of(file), operands, tensor_type(*result), words, work_bytes))


def by_users(given: Mapping[str, str]) -> dict[str, Converter]:
    """The converters of custom ops by the C that a user has for them; NAME:1 is that of an op's second output."""
    names = dict.fromkeys(name.rpartition(":")[0] or name for name in given)
    return {custom_kind(name): partial(_by_user, name, given) for name in names}


def _by_user(name: str, given: Mapping[str, str], emitter: Emitter, op: TfliteOp) -> None:
    operands = [emitter.value(index) for index in op.inputs]
    words = {name: value for name, value in options_of(op).items() if isinstance(value, bool | int | float)}
    for place, index in enumerate(op.outputs):
        text, tensor = given.get(f"{name}:{place}" if place else name), emitter.tensor(index)
        if text is None:
            raise NpukitError(f"it has {len(op.outputs)} outputs", tries=[f"--custom {name}:{place}=FILE.c"])
        if not tensor.has_shape or 0 in tensor.shape:
            raise NpukitError(f"the file does not say the shape of its result {tensor.name!r}")
        emitter.define(index, call_of(name, text, operands, tensor_type(tensor.shape, tensor.dtype), words))
