"""ONNX's recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.onnx.values import known, padded
from npukit.frontend.places import place
from npukit.frontend.recurrent import Step, Weights, gru, gru_reset_first, joined, lstm, plain, unrolled

OnnxOpConverter: Any = onnx_frontend.OnnxOpConverter
operators: Any = relax.op

X, W, R, B, LENGTHS, HIDDEN, CELL, PEEPHOLES = range(8)
"""Indices of a recurrent node's inputs."""


class _Recurrent(OnnxOpConverter):
    """A recurrent layer. `order`: ONNX's gates in the order of `Weights`; `states`: the number of states of a step."""

    order: tuple[int, ...] = (0,)
    states = 1
    activations: tuple[str, ...] = ("Tanh",)

    @classmethod
    def step(cls, attr: Mapping[str, Any]) -> Step:
        raise NotImplementedError

    @classmethod
    def _impl_v1(cls, bb: Any, inputs: Any, attr: Any, params: Any) -> Any:
        given = padded(inputs, 8)
        data, batch_first = given[X], bool(attr.get("layout", 0))
        if batch_first:
            data = bb.emit(operators.permute_dims(data, [1, 0, 2]))
        arrays = [known(given[place], params) if given[place] is not None else None for place in (W, R, B, LENGTHS)]
        cls._check(attr, given, arrays, int(data.ty.shape[0]))
        sequences, ends = [], []
        for direction, backwards in enumerate(_directions(attr)):
            initial = tuple(_state(bb, given[HIDDEN + n], direction, batch_first, params) for n in range(cls.states))
            weights = cls._weights(arrays, direction)
            steps, last = unrolled(bb, cls.step(attr), data, weights, initial, backwards=backwards)
            sequences.append(joined(bb, steps))
            ends.append([bb.emit(operators.expand_dims(state, [0])) for state in last])
        whole = [_concat(bb, sequences, 1), *(_concat(bb, parts, 0) for parts in zip(*ends, strict=True))]
        return relax.Tuple([_batch_first(bb, each) for each in whole] if batch_first else whole)

    @classmethod
    def _weights(cls, arrays: Any, direction: int) -> Weights:
        first, second = arrays[0][direction], arrays[1][direction]
        rows, size = second.shape
        bias = np.zeros(2 * rows) if arrays[2] is None else arrays[2][direction]
        halves = bias[:rows], bias[rows:]

        def ordered(value: np.ndarray) -> np.ndarray:
            return np.concatenate([value[gate * size : (gate + 1) * size] for gate in cls.order])

        return Weights(ordered(first), ordered(second), *map(ordered, halves))

    @classmethod
    def _check(cls, attr: Any, given: Any, arrays: Any, steps: int) -> None:
        """Raises an error for a layer that npukit cannot unroll."""
        names = tuple(_text(name) for name in attr.get("activations", ()))
        if any(each != cls.activations[place % len(cls.activations)] for place, each in enumerate(names)):
            raise NpukitError(f"its activations are {', '.join(names)}; npukit reads {', '.join(cls.activations)}")
        if attr.get("clip") or attr.get("input_forget") or given[PEEPHOLES] is not None:
            raise NpukitError("it has a clip, coupled gates or peepholes, which npukit does not read yet")
        if arrays[0] is None or arrays[1] is None or (given[B] is not None and arrays[2] is None):
            raise NpukitError("its weights are not constant")
        if given[LENGTHS] is not None and (arrays[3] is None or np.any(arrays[3] != steps)):
            raise NpukitError("its sequences are of several lengths, or of one that is not known")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _directions(attr: Mapping[str, Any]) -> tuple[bool, ...]:
    """A flag for each direction, True for backwards."""
    name = _text(attr.get("direction", "forward"))
    return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[name]


def _state(bb: Any, value: Any, direction: int, batch_first: bool, params: Any) -> Any:
    """The initial state of a direction; None for zeros."""
    array = known(value, params) if value is not None else None
    if value is None or (array is not None and not array.any()):
        return None
    return place(bb, value if isinstance(value, relax.Var) else bb.emit(value), 1 if batch_first else 0, direction)


def _concat(bb: Any, parts: Sequence[Any], axis: int) -> Any:
    return parts[0] if len(parts) == 1 else bb.emit(operators.concat(list(parts), axis))


def _batch_first(bb: Any, value: Any) -> Any:
    axes = [2, 0, 1, 3] if len(value.ty.shape) == 4 else [1, 0, 2]
    return bb.emit(operators.permute_dims(value, axes))


class Lstm(_Recurrent):
    order = (0, 2, 1, 3)
    states = 2
    activations = ("Sigmoid", "Tanh", "Tanh")

    @classmethod
    def step(cls, attr: Mapping[str, Any]) -> Step:
        return lstm


class Gru(_Recurrent):
    order = (0, 1, 2)
    activations = ("Sigmoid", "Tanh")

    @classmethod
    def step(cls, attr: Mapping[str, Any]) -> Step:
        return gru if attr.get("linear_before_reset", 0) else gru_reset_first


class Rnn(_Recurrent):
    @classmethod
    def step(cls, attr: Mapping[str, Any]) -> Step:
        return plain


RECURRENT: Mapping[str, Callable[..., Any]] = {"LSTM": Lstm, "GRU": Gru, "RNN": Rnn}
