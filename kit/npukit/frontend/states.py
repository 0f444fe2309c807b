"""States kept from frame to frame: pairs of an input and an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm.ir import IRModule

ATTRIBUTE, OUTPUTS = "npukit.states", "npukit.outputs"


@dataclass(frozen=True, eq=False)
class StatePair:
    """A state: index of an input, index of the output that becomes this input in the next frame, initial value."""

    input: int
    output: int
    initial: np.ndarray


def with_states(module: IRModule, states: Sequence[StatePair]) -> IRModule:
    """The module with the states as an attribute."""
    told = [[each.input, each.output, tvm.runtime.tensor(np.ascontiguousarray(each.initial))] for each in states]
    return module.with_attr(ATTRIBUTE, told) if told else module


def states_of(module: Any) -> tuple[StatePair, ...]:
    """The states declared by the module."""
    told = module.attrs[ATTRIBUTE] if module.attrs and ATTRIBUTE in module.attrs else ()
    return tuple(StatePair(int(input), int(output), initial.numpy()) for input, output, initial in told)


def with_output_names(module: IRModule, names: Sequence[str]) -> IRModule:
    """The module with the file's output names as an attribute."""
    return module.with_attr(OUTPUTS, list(names))


def output_names(module: Any) -> list[str]:
    """The file's output names; empty if the module has none."""
    return [str(name) for name in module.attrs[OUTPUTS]] if module.attrs and OUTPUTS in module.attrs else []
