"""The ends of a model: the user's sizes and constant values of inputs, names of outputs, states from frame to frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm.ir import IRModule

from npukit.errors import NpukitError
from npukit.net.limits import check_shape

InputShapes = Mapping[str, tuple[int, ...] | float]
"""Statements by input name: the shape of an input, or the constant value of all elements."""


def check_input_names(model: str, names: Sequence[str], given: InputShapes) -> None:
    """Raises an error if the user names an input that the model lacks."""
    for name in given:
        if name not in names:
            raise NpukitError(f"{model} has no input {name!r}", tries=["its inputs are: " + ", ".join(names)])


def fixed_values(given: InputShapes) -> dict[str, float]:
    """The inputs with a constant value. The network does not take them."""
    return {name: said for name, said in given.items() if not isinstance(said, tuple)}


def closed_shape(model: str, name: str, stated: tuple[int, ...], given: InputShapes) -> tuple[int, ...]:
    """The shape of input `name`, with the user's open sizes. `stated`: the model's shape, 0 for an open size. An open
    batch, the first of several axes, means 1."""
    said = given.get(name)
    shape = said if isinstance(said, tuple) else with_batch(stated)
    if len(shape) != len(stated) or any(was > 0 and was != now for was, now in zip(stated, shape, strict=True)):
        raise NpukitError(f"{model}: input {name!r} is {spelled(stated)}, not {spelled(shape)}")
    check_shape(shape, f"{model}: input {name!r}")
    if 0 in shape:
        raise NpukitError(
            f"{model}: input {name!r} has the open shape {spelled(shape)}",
            tries=[f"say its sizes: --input {name}:{spelled(shape)}"],
        )
    return shape


def with_batch(stated: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with 1 for an open first of several axes."""
    return (stated[0] or 1, *stated[1:]) if stated[1:] else stated


def spelled(shape: Sequence[int]) -> str:
    """1x?x96: a shape as spelled in an option, with ? for an open size."""
    return "x".join(str(size or "?") for size in shape)


ATTRIBUTE, OUTPUTS, REMARKS = "npukit.states", "npukit.outputs", "npukit.remarks"


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


def with_remarks(module: IRModule, remarks: Sequence[str]) -> IRModule:
    """The module with remarks on the import for the user."""
    return module.with_attr(REMARKS, list(remarks)) if remarks else module


def remarks_of(module: Any) -> tuple[str, ...]:
    """The remarks on the import."""
    return tuple(map(str, module.attrs[REMARKS])) if module.attrs and REMARKS in module.attrs else ()
