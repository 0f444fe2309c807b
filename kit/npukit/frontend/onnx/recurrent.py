"""ONNX's recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tvm import relax

from npukit.errors import NpukitError
from npukit.frontend.expressions import place
from npukit.frontend.onnx.node import known, known_real, padded, text_of
from npukit.frontend.recurrent import Step, Weights, concatenated, gru, gru_reset_first, joined, lstm, plain, unrolled

operators: Any = relax.op

X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)
"""Indices of a recurrent node's inputs."""

BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""A flag for each direction."""


@dataclass(frozen=True)
class _Kind:
    """A kind of layer. `order`: ONNX's gates in the order of `Weights`; `states`: the number of states of a step."""

    step: Step
    order: tuple[int, ...]
    activations: tuple[str, ...]
    states: int = 1


LSTM = _Kind(lstm, (0, 2, 1, 3), ("Sigmoid", "Tanh", "Tanh"), states=2)
GRU = _Kind(gru, (0, 1, 2), ("Sigmoid", "Tanh"))
GRU_RESET_FIRST = _Kind(gru_reset_first, GRU.order, GRU.activations)
RNN = _Kind(plain, (0,), ("Tanh",))


def _layer(kind: _Kind, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    given = padded(inputs, 8)
    data, batch_first = given[X], bool(attr.get("layout", 0))
    if batch_first:
        data = bb.emit(operators.permute_dims(data, [1, 0, 2]))
    arrays = [known_real(bb, given[place], params) for place in (W, R, B, LENGTHS)]
    _check(kind, attr, given, arrays, int(data.ty.shape[0]))
    sequences, ends = [], []
    for direction, backwards in enumerate(BACKWARDS[text_of(attr, "direction", "forward")]):
        states = (given[HIDDEN + number] for number in range(kind.states))
        initial = tuple(_state(bb, state, direction, batch_first, params) for state in states)
        weights = _weights(kind, arrays, direction)
        steps, last = unrolled(bb, kind.step, data, weights, initial, backwards=backwards)
        sequences.append(joined(bb, steps))
        ends.append([bb.emit(operators.expand_dims(state, [0])) for state in last])
    whole = [concatenated(bb, sequences, 1), *(concatenated(bb, parts, 0) for parts in zip(*ends, strict=True))]
    if batch_first:
        axes = [[2, 0, 1, 3] if len(each.ty.shape) == 4 else [1, 0, 2] for each in whole]
        whole = [bb.emit(operators.permute_dims(*each)) for each in zip(whole, axes, strict=True)]
    return relax.Tuple(whole)


def _weights(kind: _Kind, arrays: Any, direction: int) -> Weights:
    rows = len(arrays[1][direction])
    bias = np.zeros(2 * rows) if arrays[2] is None else arrays[2][direction]
    return Weights.ordered([arrays[0][direction], arrays[1][direction], bias[:rows], bias[rows:]], kind.order)


def _check(kind: _Kind, attr: Any, given: Any, arrays: Any, steps: int) -> None:
    """Raises an error for a layer without an unrolled form."""
    stated = attr.get("activations", ())
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in stated]
    if any(each != kind.activations[place % len(kind.activations)] for place, each in enumerate(names)):
        raise NpukitError(f"its activations are {', '.join(names)}; npukit reads {', '.join(kind.activations)}")
    if attr.get("clip") or attr.get("input_forget") or given[PEEPHOLES] is not None:
        raise NpukitError("it has a clip, coupled gates or peepholes, which npukit does not read yet")
    if arrays[0] is None or arrays[1] is None or (given[B] is not None and arrays[2] is None):
        raise NpukitError("its weights are not constant")
    if given[LENGTHS] is not None and (arrays[3] is None or np.any(arrays[3] != steps)):
        raise NpukitError("its sequences are of several lengths, or of one that is not known")


def _state(bb: Any, value: Any, direction: int, batch_first: bool, params: Any) -> Any:
    """The initial state of a direction; None for zeros."""
    if value is None or ((array := known(value, params)) is not None and not array.any()):
        return None
    return place(bb, value if isinstance(value, relax.Var) else bb.emit(value), 1 if batch_first else 0, direction)


def _gru(bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
    return _layer(GRU if attr.get("linear_before_reset", 0) else GRU_RESET_FIRST, bb, inputs, attr, params)


RECURRENT: Mapping[str, Callable[..., Any]] = {"LSTM": partial(_layer, LSTM), "GRU": _gru, "RNN": partial(_layer, RNN)}
