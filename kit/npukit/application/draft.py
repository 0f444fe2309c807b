"""A net under construction, with new ops at the start and the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from npukit.net.net import Net, Op, State
from npukit.net.ops import Attributes, Dequantize, Reshape, Slice, Transpose, TvmCode
from npukit.net.ops.table import SPECS
from npukit.net.passes.simplify import moves_nothing
from npukit.net.tensor import Quantization, Tensor

Axes = tuple[int, ...]
FLOAT = "float32"


@dataclass
class Draft:
    """A net under construction. `before`: ops at the start. `after`: ops at the end."""

    net: Net
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    before: list[Op] = field(default_factory=list)
    after: list[Op] = field(default_factory=list)
    away: bool = False
    """True if the model's format rounds halves away from zero."""

    def __post_init__(self) -> None:
        self.tensors, self.constants = dict(self.net.tensors), dict(self.net.constants)

    def new_name(self, kind: str) -> str:
        taken = {op.name for op in (*self.before, *self.net.ops, *self.after)}
        names = (f"{kind}_{number}" for number in count())
        return next(name for name in names if name not in self.tensors and name not in taken)

    def op(
        self,
        place: list[Op],
        attributes: Attributes,
        inputs: tuple[str, ...],
        quantization: Quantization | None,
        dtype: str = "int8",
        output: str = "",
    ) -> str:
        """Append an op to `place` (`before` or `after`), and return its output. Default: a new tensor."""
        name = output if isinstance(attributes, TvmCode) else self.new_name(attributes.kind)
        if not output:
            output = name
            self.tensors[output] = Tensor(output, (), dtype, quantization)
        made = Op(name, attributes, inputs, (output,))
        if not self.tensors[output].shape and not isinstance(attributes, Reshape):
            shape = SPECS[made.kind].shape(replace(self.net, tensors=self.tensors, constants=self.constants), made)
            self.tensors[output] = replace(self.tensors[output], shape=shape)
        place.append(made)
        return output

    def moved(self, place: list[Op], source: str, axes: Axes, output: str = "") -> str:
        """The tensor with permuted axes."""
        given = self.tensors[source]
        if not output:
            output = self.new_name(Transpose.kind)
            self.tensors[output] = replace(given, name=output, shape=tuple(given.shape[axis] for axis in axes))
        attributes = Reshape() if moves_nothing(axes, given.shape) else Transpose(axes)
        return self.op(place, attributes, (source,), None, output=output)

    def reshaped(self, source: str, shape: tuple[int, ...]) -> str:
        """The same bytes with another shape, at the start."""
        given = self.tensors[source]
        if given.shape == shape:
            return source
        output = self.new_name(Reshape.kind)
        self.tensors[output] = replace(given, name=output, shape=shape)
        return self.op(self.before, Reshape(), (source,), None, output=output)

    def sliced(self, source: str, axis: int, begin: int, end: int) -> str:
        """The part of a tensor from `begin` to before `end`, at the start."""
        given = self.tensors[source]
        if (begin, end) == (0, given.shape[axis]):
            return source
        first, last = [0] * len(given.shape), list(given.shape)
        first[axis], last[axis] = begin, end
        attributes = Slice(tuple(first), tuple(last), (1,) * len(last))
        return self.op(self.before, attributes, (source,), given.quantization, given.dtype)

    def dequantized(self, source: str) -> str:
        """The real numbers of an output, at the end."""
        return self.op(self.after, Dequantize(), (source,), None, FLOAT)

    def constant(self, name: str, value: np.ndarray, quantization: Quantization | None = None) -> str:
        self.constants[name] = value
        self.tensors[name] = Tensor(name, value.shape, str(value.dtype), quantization)
        return name

    def state(self, name: str, becomes: str, initial: np.ndarray) -> None:
        """Add a state: a tensor that persists from frame to frame."""
        self.net = replace(self.net, states=(*self.net.states, State(name, becomes, initial)))

    def renamed(self, names: Mapping[str, str]) -> None:
        """Rename tensors of the net."""
        self.replace_reads(names)
        ops = tuple(replace(op, outputs=_renamed(op.outputs, names)) for op in self.net.ops)
        for old, new in names.items():
            self.tensors[new] = replace(self.tensors.pop(old), name=new)
        states = tuple(replace(s, output=names.get(s.output, s.output)) for s in self.net.states)
        self.net = replace(self.net, ops=ops, states=states)

    def replace_reads(self, names: Mapping[str, str]) -> None:
        """Give the readers of each old name the new name."""
        ops = tuple(replace(op, inputs=_renamed(op.inputs, names)) for op in self.net.ops)
        self.net = replace(self.net, ops=ops, outputs=_renamed(self.net.outputs, names))

    def finished(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Net:
        ops = (*self.before, *self.net.ops, *self.after)
        return replace(
            self.net, inputs=inputs, outputs=outputs, ops=ops, tensors=self.tensors, constants=self.constants
        )


def _renamed(names: tuple[str, ...], others: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(others.get(name, name) for name in names)
