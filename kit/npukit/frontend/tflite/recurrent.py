"""TFLite's LSTM layer, computed in float and unrolled; one of a single step keeps its state from frame to frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tflite

from npukit.errors import NpukitError
from npukit.frontend.qdq import dequantize, quantize
from npukit.frontend.recurrent import State, Weights, Writer, joined, lstm, unrolled
from npukit.frontend.tflite.emit import Emitter, operators
from npukit.frontend.tflite.model import TfliteOp, TfliteTensor

INPUT, INPUT_TO_GATES, STATE_TO_GATES, PEEPHOLES, BIASES, PROJECTION, STATES, NORMS = 0, 1, 5, 9, 12, 16, 18, 20
"""The numbers at which an LSTM's inputs begin; of gates there are input, forget, cell, output."""
ORDER = (0, 1, 3, 2)
"""TFLite's gates in the order of `Weights`."""


def lstm_layer(emitter: Emitter, op: TfliteOp) -> None:
    _check(emitter, op)
    data, swapped = emitter.real(op.inputs[INPUT]), [1, 0, 2]
    if not op.options["TimeMajor"]:
        data = emitter.emit(operators.permute_dims(data, swapped))
    held, kept = [emitter.tensor(index) for index in op.inputs[STATES:NORMS]], op.outputs[1:]
    begins = tuple(emitter.real(index) for index in op.inputs[STATES:NORMS]) if kept else (None, None)
    step = partial(_step, held, float(op.options["CellClip"]))
    steps, ends = unrolled(emitter.builder, step, data, _weights(emitter, op), begins)
    for index, value in zip(kept, ends, strict=False):
        emitter.define_real(index, value)
    whole = emitter.emit(operators.squeeze(joined(emitter.builder, steps), [1]))
    emitter.define_real(op.outputs[0], whole if op.options["TimeMajor"] else operators.permute_dims(whole, swapped))


def _step(held: Sequence[TfliteTensor], clip: float, write: Writer, data: Any, weights: Weights, state: State) -> State:
    """A step in float, whose states are those that their tensors can hold."""
    made = lstm(write, data, weights, state, clip=clip)
    return tuple(_as_held(write, each, tensor) for each, tensor in zip(made, held, strict=True))


def _as_held(write: Writer, value: Any, tensor: TfliteTensor) -> Any:
    given = tensor.quantization
    if given is None or tensor.dtype == "float32":
        return value
    return write(dequantize(write(quantize(value, given, tensor.dtype)), given, tensor.dtype))


def _weights(emitter: Emitter, op: TfliteOp) -> Weights:
    first, second, bias = (_gates(emitter, op.inputs[at : at + 4]) for at in (INPUT_TO_GATES, STATE_TO_GATES, BIASES))
    return Weights(first, second, bias, np.zeros_like(bias))


def _gates(emitter: Emitter, inputs: Sequence[int]) -> np.ndarray:
    return np.concatenate([_real(emitter, inputs[gate]) for gate in ORDER])


def _real(emitter: Emitter, index: int) -> np.ndarray:
    value, given = emitter.constant(index), emitter.tensor(index).quantization
    if given is None or value.dtype == np.float32:
        return value
    return (value.astype(np.float32) - given.zero_point) * np.float32(given.scale)


def _check(emitter: Emitter, op: TfliteOp) -> None:
    """Refuses what cannot be unrolled, and says why."""
    given = [index >= 0 for index in op.inputs]
    for what, begin, end in (("peepholes", PEEPHOLES, BIASES), ("a projection", PROJECTION, STATES)):
        if any(given[begin:end]):
            raise NpukitError(f"it has {what}, which npukit does not read yet")
    if any(given[NORMS:]):
        raise NpukitError("it normalises its gates, which npukit does not read yet")
    if not all(given[INPUT_TO_GATES:PEEPHOLES]) or not all(given[BIASES:PROJECTION]):
        raise NpukitError("its input and forget gates are one, which npukit does not read yet")
    if op.options["ProjClip"] or not 0 <= op.options["CellClip"] < np.inf:
        raise NpukitError("it clips a projection that it has not, or its cell at no number")
    if op.options["FusedActivationFunction"] != tflite.ActivationFunctionType.TANH:
        raise NpukitError("its activation is not tanh")
    if not op.outputs[1:] and any(np.any(emitter.constant(index)) for index in op.inputs[STATES:NORMS]):
        raise NpukitError("its state does not begin at zero")
