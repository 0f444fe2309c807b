"""Custom ops of a TFLite file for which a user has C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from npukit.errors import NpukitError
from npukit.frontend.given import c_of, ops_of
from npukit.frontend.tflite.elementwise import Converter
from npukit.frontend.tflite.emit import Emitter, tensor_type
from npukit.frontend.tflite.model import TfliteModel, TfliteOp, custom_kind, name_of, options_of
from npukit.net.importer.given import call_of


def by_users(model: TfliteModel, name: str, custom: Mapping[str, str]) -> dict[str, Converter]:
    """The converters of custom ops that a user has C for. `name` is what errors call the model."""
    there = {name_of(op.kind) for op in model.ops} - {""}
    return {custom_kind(op): partial(_by_user, op, custom) for op in ops_of(name, custom, there)}


def _by_user(name: str, given: Mapping[str, str], emitter: Emitter, op: TfliteOp) -> None:
    operands = [emitter.value(index) for index in op.inputs]
    words = {name: value for name, value in options_of(op).items() if isinstance(value, bool | int | float)}
    for place, index in enumerate(op.outputs):
        text, tensor = c_of(given, name, place), emitter.tensor(index)
        if not tensor.has_shape or 0 in tensor.shape:
            raise NpukitError(f"the file does not say the shape of its result {tensor.name!r}")
        emitter.define(index, call_of(name, text, operands, tensor_type(tensor.shape, tensor.dtype), words))
