"""Custom ops of a TFLite file for which a user has C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from npukit.errors import NpukitError
from npukit.frontend.tflite.elementwise import Converter
from npukit.frontend.tflite.emit import Emitter, tensor_type
from npukit.frontend.tflite.model import TfliteOp, custom_kind, options_of
from npukit.net.importer.given import call_of


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
