"""States that a model keeps from frame to frame: pairs of an input and an output."""

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
    """A state: an input, by number, the output that becomes it in the next frame, and what it is in the first."""

    input: int
    output: int
    initial: np.ndarray


def with_states(module: IRModule, states: Sequence[StatePair]) -> IRModule:
    """The module, which then tells of its states."""
    told = [[each.input, each.output, tvm.runtime.tensor(np.ascontiguousarray(each.initial))] for each in states]
    return module.with_attr(ATTRIBUTE, told) if told else module


def states_of(module: Any) -> tuple[StatePair, ...]:
    """The states that the module declares."""
    told = module.attrs[ATTRIBUTE] if module.attrs and ATTRIBUTE in module.attrs else ()
    return tuple(StatePair(int(input), int(output), initial.numpy()) for input, output, initial in told)


def with_output_names(module: IRModule, names: Sequence[str]) -> IRModule:
    """The module, which then tells what the file calls its outputs."""
    return module.with_attr(OUTPUTS, list(names))


def output_names(module: Any) -> list[str]:
    """The names of outputs in the file, as far as the module tells them."""
    return [str(name) for name in module.attrs[OUTPUTS]] if module.attrs and OUTPUTS in module.attrs else []
