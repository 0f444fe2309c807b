"""LSTM, GRU and plain recurrent layers, unrolled into matrix products and elementwise operators.

The values of all steps have the same names except for a number. Quantisation therefore gives all steps the same scales,
and the steps share weights, biases and tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from tvm import relax

from npukit.frontend.expressions import place
from npukit.net.limits import STEPS

_ALIKE = "alike_"


def same_range(what: str) -> str:
    """A name for a value. All values of this name, with any number appended, get a common scale."""
    return f"{_ALIKE}{what}_"


def group(name: str) -> str | None:
    """The group of values with a common scale; None for other values."""
    return re.sub(r"[_\d]*$", "", name) if name.startswith(_ALIKE) else None


operators: Any = relax.op
_layers = count()

State = tuple[Any, ...]
"""The hidden state, and an LSTM's cell state. None stands for a zero state."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of all gates, stacked. `first` multiplies the input, `second` the hidden state. Order of an LSTM's gates:
    input, forget, output, cell. Order of a GRU's gates: update, reset, new."""

    first: np.ndarray
    second: np.ndarray
    first_bias: np.ndarray
    second_bias: np.ndarray

    @property
    def hidden(self) -> int:
        return self.second.shape[1]

    @classmethod
    def ordered(cls, arrays: Sequence[np.ndarray], order: Sequence[int]) -> Weights:
        """The weights of arrays whose gates have another order."""
        size = arrays[1].shape[1]
        return cls(*(np.concatenate([each[gate * size : (gate + 1) * size] for gate in order]) for each in arrays))


@dataclass(frozen=True)
class Writer:
    """Emits the operators of a layer in one direction."""

    builder: relax.BlockBuilder
    layer: int
    _constants: dict[tuple[bytes, tuple[int, ...]], Any] = field(default_factory=dict)
    """Constants by content, shared by all steps."""

    def __call__(self, expression: Any, what: str = "") -> Any:
        """Emits an expression. `what`: a value name common to all steps, or empty."""
        return self.builder.emit(expression, same_range(f"{self.layer}_{what}") if what else "")

    def product(self, data: Any, weights: np.ndarray, bias: np.ndarray | None, what: str = "") -> Any:
        made = operators.matmul(data, self.constant(weights.T))
        return self(made, what) if bias is None else self(operators.add(self(made), self.constant(bias)), what)

    def constant(self, values: np.ndarray) -> Any:
        plain = np.ascontiguousarray(values, np.float32)
        content = plain.tobytes(), plain.shape
        if content not in self._constants:
            self._constants[content] = relax.const(plain)
        return self._constants[content]

    def gates(self, data: Any, begin: int, end: int, size: int) -> Any:
        return self(operators.strided_slice(data, [1], [begin * size], [end * size]))


Step = Callable[[Writer, Any, Weights, State], State]


def unrolled(
    builder: relax.BlockBuilder, step: Step, data: Any, weights: Weights, state: State, *, backwards: bool = False
) -> tuple[list[Any], State]:
    """The hidden state after each step in the order of the input, and the last state. `data`: [time, batch, input]."""
    write = Writer(builder, next(_layers))
    steps, batch, size = (int(length) for length in data.ty.shape)
    STEPS.check(steps, "its sequence")
    flat = write(operators.reshape(data, (steps * batch, size)))
    bias = weights.first_bias if step is gru else weights.first_bias + weights.second_bias
    product = write.product(flat, weights.first, bias)
    products = write(operators.reshape(product, (steps, batch, len(weights.first))))
    hidden: dict[int, Any] = {}
    for time in reversed(range(steps)) if backwards else range(steps):
        state = step(write, place(builder, products, 0, time), weights, state)
        hidden[time] = state[0]
    return [hidden[time] for time in range(steps)], state


def lstm(write: Writer, data: Any, weights: Weights, state: State, *, clip: float = 0.0) -> State:
    """Computes an LSTM step. `data` includes the biases. `clip` limits the cell state's magnitude; 0 means no limit."""
    (hidden, cell), size = state, weights.hidden
    gates = data
    if hidden is not None:
        gates = write(operators.add(data, write.product(hidden, weights.second, None, "product")), "gates")
    open_ = write(operators.sigmoid(write.gates(gates, 0, 3, size)))
    taken, kept, given = (write.gates(open_, gate, gate + 1, size) for gate in range(3))
    new = write(operators.multiply(taken, write(operators.tanh(write.gates(gates, 3, 4, size)))), "new")
    if cell is not None:
        new = write(operators.add(write(operators.multiply(kept, cell), "kept"), new), "cell")
    if clip:
        new = write(operators.clip(new, -clip, clip), "clipped")
    return write(operators.multiply(given, write(operators.tanh(new))), "hidden"), new


def gru(write: Writer, data: Any, weights: Weights, state: State) -> State:
    """Computes a GRU step. The reset gate scales weights times hidden state, as in cuDNN, PyTorch and Keras."""
    (hidden,), size = state, weights.hidden
    total = write.gates(data, 2, 3, size)
    if hidden is None and not weights.second_bias.any():
        gates = write(operators.sigmoid(write.gates(data, 0, 2, size)))
        return _updated(write, gates, total, hidden, size)
    product = _product(write, data, weights, hidden)
    opened = write(operators.add(write.gates(data, 0, 2, size), write.gates(product, 0, 2, size)), "gates")
    gates = write(operators.sigmoid(opened))
    reset = write(operators.multiply(write.gates(gates, 1, 2, size), write.gates(product, 2, 3, size)), "reset")
    return _updated(write, gates, write(operators.add(total, reset), "sum"), hidden, size)


def _product(write: Writer, data: Any, weights: Weights, hidden: Any) -> Any:
    """The hidden state's contribution to all gates; for a zero state, the bias alone."""
    if hidden is None:
        return write.constant(np.tile(weights.second_bias, (int(data.ty.shape[0]), 1)))
    return write.product(hidden, weights.second, weights.second_bias, "product")


def gru_reset_first(write: Writer, data: Any, weights: Weights, state: State) -> State:
    """Computes a GRU step. `data` includes the biases. The reset gate scales the hidden state itself, as in ONNX by
    default."""
    (hidden,), size, second = state, weights.hidden, weights.second
    opened, total = write.gates(data, 0, 2, size), write.gates(data, 2, 3, size)
    if hidden is None:
        return _updated(write, write(operators.sigmoid(opened)), total, hidden, size)
    product = write.product(hidden, second[: 2 * size], None, "product")
    gates = write(operators.sigmoid(write(operators.add(opened, product), "gates")))
    reset = write(operators.multiply(write.gates(gates, 1, 2, size), hidden), "reset")
    new = write.product(reset, second[2 * size :], None, "change_of_sum")
    return _updated(write, gates, write(operators.add(total, new), "sum"), hidden, size)


def _updated(write: Writer, gates: Any, total: Any, hidden: Any, size: int) -> State:
    """The new hidden state: the old state weighted by the update gate, plus the candidate weighted by the rest."""
    update, new = write.gates(gates, 0, 1, size), write(operators.tanh(total))
    if hidden is None:
        rest = write(operators.subtract(relax.const(np.array(1, np.float32)), update))
        return (write(operators.multiply(rest, new), "hidden"),)
    kept = write(operators.multiply(update, write(operators.subtract(hidden, new), "change")), "kept")
    return (write(operators.add(new, kept), "hidden"),)


def plain(write: Writer, data: Any, weights: Weights, state: State, *, function: Any = operators.tanh) -> State:
    """Computes a step of a plain recurrent layer. `data` includes the biases."""
    if state[0] is not None:
        data = write(operators.add(data, write.product(state[0], weights.second, None, "product")), "sum")
    return (write(function(data)),)


def joined(builder: relax.BlockBuilder, steps: Sequence[Any]) -> Any:
    """The hidden states of all steps, each [batch, hidden], joined to [time, 1, batch, hidden]."""
    parts = [builder.emit(operators.expand_dims(each, [0, 1])) for each in steps]
    return builder.emit(operators.concat(parts, 0))


def concatenated(builder: relax.BlockBuilder, parts: Sequence[Any], axis: int) -> Any:
    return parts[0] if len(parts) == 1 else builder.emit(operators.concat(list(parts), axis))
