# pyright: reportMissingImports=false
"""PyTorch's LSTM and GRU layers, unrolled here instead of decomposed by PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from tvm import relax

from npukit.frontend.expressions import place
from npukit.frontend.recurrent import Step, Weights, concatenated, gru, joined, lstm, unrolled

operators: Any = relax.op
Known = Mapping[str, np.ndarray]

KINDS: Mapping[Any, tuple[Step, tuple[int, ...]]] = {
    torch.ops.aten.lstm.input: (lstm, (0, 1, 3, 2)),
    torch.ops.aten.gru.input: (gru, (1, 0, 2)),
}
"""The step function by operator, and PyTorch's gates in the order of `Weights`."""


def recurrent_converters(known: Known) -> dict[str, Any]:
    """TVM's converters by operator. `known`: the program's arrays, by name."""
    return {f"{kind.__name__.partition('.')[0]}.input": partial(_layers, known, *each) for kind, each in KINDS.items()}


def _layers(known: Known, step: Step, order: Sequence[int], node: Any, importer: Any) -> list[Any]:
    """The hidden states of the whole sequence, and the last states of all layers and directions."""
    data, initial, arrays, biased, _, _, _, both_ways, batch_first = node.args
    builder, value = importer.block_builder, importer.env[data]
    states = [_state(importer, each) for each in (initial if isinstance(initial, list | tuple) else [initial])]
    count = 4 if biased else 2  # arrays of a layer in a direction
    value = builder.emit(operators.permute_dims(value, [1, 0, 2])) if batch_first else value
    sides, ends = [], []
    for index in range(len(arrays) // count):
        own = [known[each.name] for each in arrays[index * count : (index + 1) * count]]
        weights = Weights.ordered([*own, *[np.zeros(len(own[0]))] * (4 - count)], order)
        start = tuple(None if state is None else place(builder, state, 0, index) for state in states)
        backwards = bool(both_ways and index % 2)
        steps, last = unrolled(builder, step, value, weights, start, backwards=backwards)
        sides.append(builder.emit(operators.squeeze(joined(builder, steps), [1])))
        ends.append([builder.emit(operators.expand_dims(state, [0])) for state in last])
        if backwards or not both_ways:
            value, sides = concatenated(builder, sides, 2), []
    value = builder.emit(operators.permute_dims(value, [1, 0, 2])) if batch_first else value
    return [value, *(concatenated(builder, states, 0) for states in zip(*ends, strict=True))]


def _state(importer: Any, state: Any) -> Any:
    """An initial state; None if the program fills it with zeros."""
    name, numbers = str(state.target), [argument for argument in state.args if isinstance(argument, int | float)]
    return None if "zeros" in name or ("full" in name and not any(numbers)) else importer.env[state]
