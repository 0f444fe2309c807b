"""TFLite's ops on activations of 16 bits as its kernels of integers compute them, in tensor expressions."""

from __future__ import annotations

from functools import partial
from typing import Any

from tvm import te

from npukit.frontend.tflite.emit import Emitter
from npukit.frontend.tflite.fixed_point import clamped, multipliers, requantized
from npukit.frontend.tflite.model import TfliteOp


def requantize(emitter: Emitter, op: TfliteOp) -> None:
    """The same numbers in integers of another scale or width."""
    source, result = (emitter.scale(index) for index in (op.inputs[0], op.outputs[0]))
    rescaled = partial(_rescaled, source.zero_point, result.zero_point, emitter.tensor(op.outputs[0]).dtype)
    factor = multipliers([source.scale / result.scale])
    emitter.define(op.outputs[0], emitter.loops(rescaled, emitter.value(op.inputs[0]), "requantize", *factor))


def _rescaled(before: int, after: int, dtype: str, data: Any, multiplier: Any, shift: Any) -> Any:
    def scaled(*place: Any) -> Any:
        return clamped(requantized(data(*place).astype("int32") - before, multiplier[0], shift[0]) + after, dtype)

    return te.compute(data.shape, scaled, name="requantized")
