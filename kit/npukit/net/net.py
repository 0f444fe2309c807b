"""Net: the integer network every later part works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from npukit.net.ops import Attributes, Matmul, TvmCode
from npukit.net.tensor import Tensor

CORE = "cpu"
"""The engine that every PE has: its core."""

NO_WORK = "no work: its output aliases its input"
"""Why the engine of a reshape says nothing."""

LINK = "link"
"""The engine that is none of a PE's: the firmware converts what the host sends and reads (`net/at_link.py`)."""

LONGEST_TITLE = 3
"""Kinds of op in a title."""


@dataclass(frozen=True)
class Op:
    """One operation. `attributes` says of which kind; `engine` runs it, `reason` says why no accelerator does.

    `choice`: how its accelerator computes it, by a name of the plug-in's (`accel/choices.py`). `places`: where in
    memories of the accelerator's own it keeps something from frame to frame. `pattern`: the match of a plug-in's
    pattern that it belongs to, until the pass `patterns` has looked at it.
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

    @property
    def parts(self) -> tuple[Op, ...]:
        """The ops it consists of: itself, unless it is fused."""
        return self.attributes.ops if isinstance(self.attributes, Fused) else (self,)

    @property
    def title(self) -> str:
        """The op's name for people: its kind, or those of its parts."""
        kinds = [part.attributes.what if isinstance(part.attributes, TvmCode) else part.kind for part in self.parts]
        return " + ".join(kinds) if len(kinds) <= LONGEST_TITLE else f"{len(kinds)} ops"

    @property
    def output(self) -> str:
        """The one output of an op that has one."""
        (output,) = self.outputs
        return output

    def placed(self, engine: str, reason: str = "") -> Op:
        return replace(self, engine=engine, reason=reason)


@dataclass(frozen=True)
class Fused(Attributes):
    """Ops that an accelerator takes as one, in an order in which they can run. Only the last one's output leaves them.

    inputs: what each part in turn takes from outside, so that a tensor may be there twice. What the parts have between
    them is no buffer of the plan, but a tensor of the net. `whole`: not to be cut into tiles. `pattern`: the name of
    the Relax pattern that matched them.
    """

    kind: ClassVar[str] = "fused"
    ops: tuple[Op, ...] = ()
    whole: bool = False
    pattern: str = ""


def fuse(parts: Sequence[Op], *, whole: bool = False, pattern: str = "") -> Op:
    """The parts as one op, named like the last."""
    inside = {name for part in parts for name in part.outputs}
    inputs = tuple(name for part in parts for name in part.inputs if name not in inside)
    placed = tuple(replace(part.placed(CORE), pattern="") for part in parts)
    return Op(parts[-1].name, Fused(placed, whole, pattern), inputs, parts[-1].outputs)


@dataclass(frozen=True, eq=False)
class State:
    """A tensor that the network keeps from frame to frame.

    Ops read it under the name `input`; what the frame leaves in `output` is its value in the next one, and `initial` in
    the first.
    """

    input: str
    output: str
    initial: np.ndarray

    @property
    def begins(self) -> Any:
        """The initial value for people: one number where all are the same."""
        same = np.all(self.initial == self.initial.flat[0])
        return self.initial.flat[0].item() if same else self.initial.tolist()


@dataclass(frozen=True)
class Net:
    """Ops in an order in which they can run; tensors and constants by name.

    Activations are NHWC. `inputs` and `outputs` are in the model's order; `states` are neither.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[Op, ...]
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    states: tuple[State, ...] = ()

    @property
    def begins(self) -> tuple[str, ...]:
        """The activations that are there when a frame begins: the inputs, and the states."""
        return (*self.inputs, *(state.input for state in self.states))

    @property
    def ends(self) -> tuple[str, ...]:
        """The tensors that something outside the frame reads: the outputs, and what becomes a state."""
        return (*self.outputs, *(state.output for state in self.states))

    def __str__(self) -> str:
        from npukit.net.text import print_net

        return print_net(self)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]

    def constant(self, op: Op, index: int) -> np.ndarray | None:
        """The value of an op's input, if it has that input and it is constant."""
        return self.constants.get(op.inputs[index]) if index < len(op.inputs) else None

    def activations(self, op: Op) -> Iterator[str]:
        """The op's inputs that are not constants."""
        return (name for name in op.inputs if name not in self.constants)

    def with_ops(self, ops: tuple[Op, ...]) -> Net:
        return replace(self, ops=ops)

    def alone(self, op: Op) -> Net:
        """A net of the op's parts and nothing else, but for the state that it reads and makes."""
        states = tuple(each for each in self.states if each.input in op.inputs and each.output in op.outputs)
        held = {state.input for state in states}
        inputs = tuple(name for name in dict.fromkeys(self.activations(op)) if name not in held)
        names = dict.fromkeys(name for part in op.parts for name in (*part.inputs, *part.outputs))
        tensors = {name: self.tensors[name] for name in names if name in self.tensors}
        constants = {name: self.constants[name] for name in names if name in self.constants}
        return Net(f"{self.name} {op.name}", inputs, op.outputs, op.parts, tensors, constants, states)


def operand_axes(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transpositions of both inputs of a product."""
    assert isinstance(op.attributes, Matmul)
    return op.attributes.first, op.attributes.second
