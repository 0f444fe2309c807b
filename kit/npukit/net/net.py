"""Net: the integer network, the basis of all later stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from npukit.net.attributes import Attributes, TvmCode
from npukit.net.tensor import Tensor

Kind = TypeVar("Kind", bound=Attributes)

CORE = "cpu"
"""The core, an engine of every PE."""

NO_WORK = "no work: its output aliases its input"
"""Reason recorded for a reshape in place, which needs no engine."""

LINK = "link"
"""The engine outside the PEs: the firmware converts messages from and to the host (`net/passes/at_link.py`)."""

LONGEST_TITLE = 3
"""Maximum number of op kinds in a title."""


@dataclass(frozen=True)
class Op:
    """One operation. `attributes` define its kind; `engine` runs the op; `reason` explains why no accelerator does.

    `choice`: name of the accelerator's way to compute the op, defined by the plug-in (`accel/choices.py`). `places`:
    name and offset in each of the accelerator's own memories where the op keeps data from frame to frame. `pattern`:
    match of a plug-in's pattern, until the pass `patterns` processes the op.
    """

    name: str
    attributes: Attributes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    engine: str = CORE
    reason: str = ""
    choice: str = ""
    places: tuple[tuple[str, int], ...] = ()
    pattern: str = ""

    @property
    def kind(self) -> str:
        return self.attributes.kind

    def of(self, *kinds: type[Kind]) -> Kind:
        """The attributes of an op of one of `kinds`."""
        assert isinstance(self.attributes, kinds)
        return self.attributes

    @property
    def parts(self) -> tuple[Op, ...]:
        """The parts of a fused op; otherwise the op itself."""
        return self.attributes.ops if isinstance(self.attributes, Fused) else (self,)

    @property
    def title(self) -> str:
        """The op's name for people: the kind of each part."""
        kinds = [part.attributes.what if isinstance(part.attributes, TvmCode) else part.kind for part in self.parts]
        return " + ".join(kinds) if len(kinds) <= LONGEST_TITLE else f"{len(kinds)} ops"

    @property
    def output(self) -> str:
        """The output of an op with exactly one output."""
        (output,) = self.outputs
        return output

    def placed(self, engine: str, reason: str = "") -> Op:
        return replace(self, engine=engine, reason=reason)


@dataclass(frozen=True)
class Fused(Attributes):
    """Ops that an accelerator runs as one op, in execution order. Only the last op's output is visible outside. inputs:
    outside inputs of each part in turn. A tensor may appear twice. Tensors between parts belong to the net but have no
    buffer in the plan. `whole`: the op must not be cut into tiles. `pattern`: name of the matching Relax pattern."""

    ops: tuple[Op, ...] = ()
    whole: bool = False
    pattern: str = ""


def fuse(parts: Sequence[Op], *, whole: bool = False, pattern: str = "") -> Op:
    """A fused op of the parts, with the name of the last part."""
    inside = {name for part in parts for name in part.outputs}
    inputs = tuple(name for part in parts for name in part.inputs if name not in inside)
    placed = tuple(replace(part.placed(CORE), pattern="") for part in parts)
    return Op(parts[-1].name, Fused(placed, whole, pattern), inputs, parts[-1].outputs)


@dataclass(frozen=True, eq=False)
class State:
    """A tensor kept from frame to frame. Ops read the state as tensor `input`. The value of tensor `output` at the end
    of a frame is the state in the next frame; `initial` is the state in the first frame."""

    input: str
    output: str
    initial: np.ndarray

    @property
    def begins(self) -> Any:
        """The initial value for people: one number if all elements are equal."""
        same = np.all(self.initial == self.initial.flat[0])
        return self.initial.flat[0].item() if same else self.initial.tolist()


@dataclass(frozen=True)
class Net:
    """Ops in execution order; tensors and constants by name. Activations are NHWC. `inputs` and `outputs` are in the
    model's order and exclude `states`."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[Op, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: tuple[State, ...] = ()
    rounds_once: bool = False
    """True if products and their sums are rescaled with one rounding, as by ONNX Runtime and PyTorch; else with two, as
    by TensorFlow Lite."""

    @property
    def begins(self) -> tuple[str, ...]:
        """The activations available at the start of a frame: inputs and states."""
        return (*self.inputs, *(state.input for state in self.states))

    @property
    def ends(self) -> tuple[str, ...]:
        """The tensors read after the frame: outputs and next states."""
        return (*self.outputs, *(state.output for state in self.states))

    def __str__(self) -> str:
        from npukit.net.text import print_net

        return print_net(self)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def constant(self, op: Op, index: int) -> np.ndarray | None:
        """The value of an op's input, or None if the input is missing or not constant."""
        return self.constants.get(op.inputs[index]) if index < len(op.inputs) else None

    def activations(self, op: Op) -> Iterator[str]:
        """The op's inputs without constants."""
        return (name for name in op.inputs if name not in self.constants)

    def with_ops(self, ops: tuple[Op, ...]) -> Net:
        return replace(self, ops=ops)

    def alone(self, op: Op) -> Net:
        """A net of the op's parts alone. A state stays a state if the op both reads and writes it."""
        states = tuple(each for each in self.states if each.input in op.inputs and each.output in op.outputs)
        held = {state.input for state in states}
        inputs = tuple(name for name in dict.fromkeys(self.activations(op)) if name not in held)
        names = dict.fromkeys(name for part in op.parts for name in (*part.inputs, *part.outputs))
        tensors = {name: self.tensors[name] for name in names if name in self.tensors}
        constants = {name: self.constants[name] for name in names if name in self.constants}
        return Net(f"{self.name} {op.name}", inputs, op.outputs, op.parts, tensors, constants, states, self.rounds_once)
