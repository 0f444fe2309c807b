"""Interpreter of a Net in numpy, op by op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npukit.errors import NpukitError
from npukit.net.net import Net, Op
from npukit.net.ops.kind import Reference
from npukit.net.ops.table import SPECS

Held = Mapping[str, np.ndarray]
"""All activations of a frame by name, states included."""


def run_reference(net: Net, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The net's outputs, with a leading case axis if the inputs have a case axis."""
    values = evaluate(net, inputs)
    return [values[name] for name in net.outputs]


def run_op(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The output of one op."""
    return SPECS[op.kind].reference(net, op, operands)


def evaluate(
    net: Net, inputs: Sequence[np.ndarray], before: Held | None = None, run: Reference = run_op
) -> dict[str, np.ndarray]:
    """Every activation of the net by name, with a leading case axis if the inputs have one. States start from the
    values of the frame `before`, else from their initial values. `run` computes an op."""
    batched = has_cases(net, inputs)
    values = {name: value if batched else value[None] for name, value in zip(net.inputs, inputs, strict=True)}
    cases = len(next(iter(values.values()), [None]))
    for state in net.states:
        initial = np.broadcast_to(state.initial, (cases, *state.initial.shape))
        held = before[state.output] if before is not None else initial
        values[state.input] = held if before is None or batched else held[None]
    for op in (part for each in net.ops for part in each.parts):
        operands = [net.constants[name] if name in net.constants else values[name] for name in op.inputs]
        values[op.output] = run(net, op, operands)
    return values if batched else {name: value[0] for name, value in values.items()}


def has_cases(net: Net, inputs: Sequence[np.ndarray]) -> bool:
    """True if the inputs have a leading case axis. Raises an error if the inputs do not fit the net."""
    if len(inputs) != len(net.inputs):
        raise NpukitError(f"{net.name} takes {len(net.inputs)} inputs, not {len(inputs)}")
    batched = [_has_cases(net, name, value) for name, value in zip(net.inputs, inputs, strict=True)]
    if len(set(batched)) > 1:
        raise NpukitError(f"{net.name}: some inputs have a leading axis of cases and some do not")
    return batched[0]


def _has_cases(net: Net, name: str, value: np.ndarray) -> bool:
    tensor = net.tensor(name)
    if value.dtype != tensor.dtype:
        raise NpukitError(f"input {name} is {tensor.dtype}, not {value.dtype}")
    if value.shape[1:] != tensor.shape and value.shape != tensor.shape:
        raise NpukitError(f"input {name} has shape {list(tensor.shape)}, not {list(value.shape)}")
    return value.shape != tensor.shape
