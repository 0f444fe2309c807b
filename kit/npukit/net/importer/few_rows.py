"""Float functions of few rows, in steps that PEs can share: sums over pieces of each row, totals of the pieces, and
functions of each number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt, prod
from typing import Any

import numpy as np
from tvm import relax

from npukit.net.importer.expressions import callee, dtype_of, operands, shape_of

operators: Any = relax.op

FEW_ROWS = 8
"""Maximum number of rows in steps. PEs share more rows by whole rows, but for norms of groups of channels: loops over
groups are not loops over channels."""
SHORTEST_ROW = 128
"""Minimum numbers of a row in steps. A step costs each PE about as many cycles as 8 numbers of a norm."""
GROUPED = ("nn.group_norm", "nn.instance_norm")
REDUCTIONS = ("sum", "mean", "max", "min", "variance")


@dataclass
class RowSteps:
    """The steps of functions. `definitions`: the expression bound to each variable. `reads`: number of reads of each
    variable."""

    definitions: dict[Any, Any]
    reads: Counter[Any]
    _known: dict[tuple[str, Any, tuple[int, ...]], Any] = field(default_factory=dict)
    """The reductions so far, by kind, source and axes."""

    def last(self, variable: Any) -> Any:
        """The variable of a function's last step; the function's own variable if the function stays whole."""
        value = self.definitions.get(variable)
        made = self._made(value) if callee(value) in _STEPS and dtype_of(value) == "float32" else None
        if made is None:
            return variable
        self.definitions[variable] = made
        self.reads.subtract(operands(value))
        self.reads[made] = self.reads[variable]
        return made

    def _made(self, call: Any) -> Any:
        shape, axes = _rows(call)
        length = prod(shape[axis] for axis in axes)
        most = prod(shape) if callee(call) in GROUPED else FEW_ROWS * length
        if length < SHORTEST_ROW or _pieces(length) == length or prod(shape) > most:
            return None
        long = [axis for axis, size in enumerate(shape) if size > 1]
        last = long[-sum(axis in long for axis in axes) :]
        return _STEPS[callee(call)](self, call, axes) if {*last} <= {*axes} else None

    def bound(self, call: Any) -> Any:
        """A new variable for a call."""
        made = relax.BlockBuilder().normalize(call)
        variable = relax.Var("step", made.ty)
        self.definitions[variable] = made
        self.reads.update(operands(made))
        return variable

    def reduced(self, kind: str, source: Any, axes: Sequence[int]) -> Any:
        """The sum, largest, smallest or mean of each row. The axes keep size 1."""
        key = kind, source, tuple(axes)
        if key not in self._known:
            self._known[key] = self._mean(source, axes) if kind == "mean" else self._by_pieces(kind, source, axes)
        return self._known[key]

    def _mean(self, source: Any, axes: Sequence[int]) -> Any:
        length = prod(shape_of(source)[axis] for axis in axes)
        return self.bound(operators.divide(self.reduced("sum", source, axes), _number(length)))

    def _by_pieces(self, kind: str, source: Any, axes: Sequence[int]) -> Any:
        operator, bound, shape = getattr(operators, kind), self.bound, shape_of(source)
        length = prod(shape[axis] for axis in axes)
        count, rows = _pieces(length), prod(shape) // length
        parts = bound(operators.reshape(source, (rows * count, length // count)))
        pieces = bound(operators.reshape(bound(operator(parts, axis=[1], keepdims=True)), (rows, count)))
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return bound(operators.reshape(bound(operator(pieces, axis=[1])), kept))

    def variance(self, source: Any, axes: Sequence[int]) -> Any:
        return self.reduced("mean", self.bound(operators.square(self.centred(source, axes))), axes)

    def centred(self, source: Any, axes: Sequence[int]) -> Any:
        return self.bound(operators.subtract(source, self.reduced("mean", source, axes)))

    def scaled(self, source: Any, spread: Any, epsilon: float) -> Any:
        """A source divided by the root of its rows' mean squares."""
        inverse = self.bound(operators.rsqrt(self.bound(operators.add(spread, _number(epsilon)))))
        return self.bound(operators.multiply(source, inverse))


def _rows(call: Any) -> tuple[Sequence[int], Sequence[int]]:
    """The shape of a function's source, and the axes of the rows."""
    shape, told = shape_of(call.args[0]), call.attrs
    if callee(call) in GROUPED:
        groups = int(getattr(told, "num_groups", shape[1]))
        return (shape[0], groups, prod(shape[1:]) // groups), [2] if int(told.channel_axis) == 1 else []
    given = told.axes if hasattr(told, "axes") else told.axis
    listed = range(len(shape)) if given is None else [given] if isinstance(given, int) else given
    return shape, [int(axis) % len(shape) for axis in listed]


def _pieces(length: int) -> int:
    """The number of pieces of a row: about as many as numbers in a piece."""
    return next(count for count in range(isqrt(length - 1) + 1, length + 1) if length % count == 0)


def _number(value: float) -> Any:
    return relax.const(np.array(value, np.float32))


def _reduction(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    kind, source = callee(call), call.args[0]
    found = steps.variance(source, axes) if kind == "variance" else steps.reduced(kind, source, axes)
    return steps.bound(operators.reshape(found, shape_of(call)))


def _softmax(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    powers = steps.bound(operators.exp(_below_the_largest(steps, call.args[0], axes)))
    share = steps.bound(operators.divide(_number(1), steps.reduced("sum", powers, axes)))
    return steps.bound(operators.multiply(powers, share))


def _log_softmax(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    below = _below_the_largest(steps, call.args[0], axes)
    total = steps.reduced("sum", steps.bound(operators.exp(below)), axes)
    return steps.bound(operators.subtract(below, steps.bound(operators.log(total))))


def _below_the_largest(steps: RowSteps, source: Any, axes: Sequence[int]) -> Any:
    return steps.bound(operators.subtract(source, steps.reduced("max", source, axes)))


def _layer_norm(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    (source, gain, bias), told = call.args, call.attrs
    made = steps.scaled(steps.centred(source, axes), steps.variance(source, axes), told.epsilon)
    made = steps.bound(operators.multiply(made, gain)) if told.scale else made
    return steps.bound(operators.add(made, bias)) if told.center else made


def _rms_norm(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    source, gain = call.args
    spread = steps.reduced("mean", steps.bound(operators.square(source)), axes)
    return steps.bound(operators.multiply(steps.scaled(source, spread, call.attrs.epsilon), gain))


def _group_norm(steps: RowSteps, call: Any, axes: Sequence[int]) -> Any:
    (source, *factors), shape, bound = call.args, shape_of(call), steps.bound
    rows, by_channel = bound(operators.reshape(source, _rows(call)[0])), (shape[1], *(1 for _ in shape[2:]))
    gain, bias = (bound(operators.reshape(each, by_channel)) for each in factors)
    made = steps.scaled(steps.centred(rows, axes), steps.variance(rows, axes), call.attrs.epsilon)
    return bound(operators.add(bound(operators.multiply(bound(operators.reshape(made, shape)), gain)), bias))


_STEPS: Mapping[str, Callable[[RowSteps, Any, Sequence[int]], Any]] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    **dict.fromkeys(GROUPED, _group_norm),
    "nn.softmax": _softmax,
    "nn.log_softmax": _log_softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
}
