"""Slices of a tensor, as Relax operators known to npukit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

operators: Any = relax.op


def place(builder: relax.BlockBuilder, data: Any, axis: int, index: int) -> Any:
    """The values at one index of an axis, without this axis. A negative index counts from the end."""
    part = taken(builder, data, axis, [index])
    return builder.emit(operators.squeeze(part, [axis % len(data.ty.shape)]))


def taken(builder: relax.BlockBuilder, data: Any, axis: int, indices: Sequence[int]) -> Any:
    """The values at evenly spaced indices of an axis; None if the spacing is uneven."""
    size = int(data.ty.shape[axis])
    places = np.array([index % size for index in indices])
    steps = np.unique(np.diff(places))
    if len(steps) > 1 or min(steps, default=1) < 1:
        return None
    step = int(steps[0]) if len(steps) else 1
    return builder.emit(operators.strided_slice(data, [axis], [int(places[0])], [int(places[-1]) + 1], [step]))
