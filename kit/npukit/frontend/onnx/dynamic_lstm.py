"""ONNX Runtime's DynamicQuantizeLSTM, unrolled into integer products: int8 weights stay int8.

The whole input is quantised at once, and the hidden state at each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from npukit.errors import NpukitError
from npukit.frontend.onnx.node import text_of
from npukit.frontend.onnx.spelling import Spelling

X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES, SCALES = range(9)
"""Indices of the inputs. Scales and zero points of W and of R follow."""
GATES = 4
USUAL_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""True for each direction in which the layer takes the last step first."""


@dataclass(frozen=True)
class _Weights:
    """Names of a direction's integers with a row for each input, of their scales and of their zero points."""

    integers: str
    scales: str
    zeros: str


def dynamic_lstm(spelling: Spelling) -> None:
    _check(spelling)
    steps, batch, width = spelling.sizes(X)
    flat = spelling.reshaped(spelling.input(X), [steps * batch, width])
    sequences, hidden, cells = list[str](), list[str](), list[str]()
    for direction, backwards in enumerate(DIRECTIONS[text_of(spelling.attributes, "direction", "forward")]):
        sums = _products(spelling, flat, _weights(spelling, W, SCALES, direction))
        if spelling.input(B):
            bias = spelling.known(B)[direction].reshape(2, -1).sum(axis=0)
            sums = spelling.add("Add", sums, spelling.constant(bias))
        parts = [sums] if steps == 1 else spelling.parts(sums, steps, 0)
        made, cell = _direction(spelling, parts[::-1] if backwards else parts, direction, batch)
        made, last = made[::-1] if backwards else made, made[-1]
        size = spelling.sizes(R)[1]
        sequences.append(_joined(spelling, [spelling.reshaped(each, [1, 1, batch, size]) for each in made], 0))
        hidden.append(spelling.reshaped(last, [1, batch, size]))
        cells.append(spelling.reshaped(cell, [1, batch, size]))
    for parts, axis, output in zip((sequences, hidden, cells), (1, 0, 0), spelling.node.output, strict=False):
        if output:
            spelling.add("Identity", _joined(spelling, parts, axis), to=output)


def _check(spelling: Spelling) -> None:
    told = spelling.attributes
    names = [each.decode() for each in told.get("activations", ())]
    if any(each != USUAL_ACTIVATIONS[place % len(USUAL_ACTIVATIONS)] for place, each in enumerate(names)):
        raise NpukitError(f"its activations are {', '.join(names)}; npukit reads {', '.join(USUAL_ACTIVATIONS)}")
    if told.get("clip") or told.get("input_forget") or spelling.input(PEEPHOLES) or told.get("layout"):
        raise NpukitError("it has a clip, coupled gates, peepholes or another layout, which npukit does not read yet")
    if spelling.input(LENGTHS) and np.any(spelling.known(LENGTHS) != spelling.sizes(X)[0]):
        raise NpukitError("its sequences are of several lengths")


def _weights(spelling: Spelling, weights: int, scales: int, direction: int) -> _Weights:
    ends = (spelling.known(place)[direction] for place in (scales, scales + 1))
    return _Weights(*map(spelling.constant, (spelling.known(weights)[direction], *ends)))


def _products(spelling: Spelling, data: str, weights: _Weights) -> str:
    """The product of data, quantised at run time, and integer weights."""
    names = [spelling.new(data) for _ in range(3)]
    spelling.make("DynamicQuantizeLinear", [data], names)
    integers, scale, zero = names
    sums = spelling.add("MatMulInteger", integers, weights.integers, zero, weights.zeros)
    real = spelling.add("Cast", sums, to_type=TensorProto.FLOAT)
    return spelling.add("Mul", real, spelling.add("Mul", scale, weights.scales))


def _direction(spelling: Spelling, parts: Sequence[str], direction: int, batch: int) -> tuple[list[str], str]:
    """The hidden state after each step, and the last cell state. `parts`: products of the input, by step."""
    weights = _weights(spelling, R, SCALES + 2, direction)
    hidden, cell = (_initial(spelling, place, direction, batch) for place in (HIDDEN, CELL))
    made = list[str]()
    for part in parts:
        sums = spelling.add("Add", part, _products(spelling, hidden, weights)) if hidden else part
        taken, given, forgotten, new = spelling.parts(sums, GATES, 1)
        taken, given, forgotten = (spelling.add("Sigmoid", gate) for gate in (taken, given, forgotten))
        added = spelling.add("Mul", taken, spelling.add("Tanh", new))
        cell = spelling.add("Add", spelling.add("Mul", forgotten, cell), added) if cell else added
        hidden = spelling.add("Mul", given, spelling.add("Tanh", cell))
        made.append(hidden)
    return made, cell


def _initial(spelling: Spelling, place: int, direction: int, batch: int) -> str:
    """The name of an initial state; empty for zeros."""
    name = spelling.input(place)
    value = spelling.value(name) if name else None
    if not name or (value is not None and not value.any()):
        return ""
    index = spelling.constant(np.array(direction))
    return spelling.reshaped(spelling.add("Gather", name, index, axis=0), [batch, spelling.sizes(R)[1]])


def _joined(spelling: Spelling, parts: Sequence[str], axis: int) -> str:
    return parts[0] if len(parts) == 1 else spelling.add("Concat", *parts, axis=axis)
