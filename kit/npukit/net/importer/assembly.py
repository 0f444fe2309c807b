"""Assembly of a Net: names, tensors, constants, and axis orders in memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npukit.net.net import Net, Op
from npukit.net.ops import Attributes, Lookup, Reshape, Transpose
from npukit.net.passes.simplify import moves_nothing, without_unread
from npukit.net.tensor import Quantization, Tensor

Order = tuple[int, ...]
"""An axis order: order[i] is the model's axis at position i in memory."""


@dataclass(frozen=True)
class AxesView:
    """A tensor of the net with the memory order of the model's axes (NCHW in the model, NHWC in the net)."""

    name: str
    order: Order


def straight(rank: int) -> Order:
    """The order of a tensor with equal axes in model and memory."""
    return tuple(range(rank))


def layout_order(layout: str) -> Order:
    """The order of NHWC in the model's layout, or of NWC for one-dimensional images."""
    return tuple(layout.index(axis) for axis in "NHWC" if axis in layout)


@dataclass
class NetInMaking:
    """The net under construction."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    title: str = ""
    """The model's layer name for ops added next."""
    pattern: str = ""
    """The match of a plug-in's pattern for ops added next."""
    _counts: Counter[str] = field(default_factory=Counter)
    _alike: dict[Hashable, str] = field(default_factory=dict)
    """The name of each constant, by its contents."""
    _reshaped: dict[str, str] = field(default_factory=dict)
    """The source of each reshape, by name of the result."""
    _arranged: dict[tuple[str, Order], str] = field(default_factory=dict)

    def new_name(self, kind: str) -> str:
        """A new name, such as conv2d_0 or conv2d_1. Names are stable and valid in C."""
        while True:
            name = f"{kind}_{self._counts[kind]}"
            self._counts[kind] += 1
            if name not in self.tensors:
                return name

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str, quantization: Quantization | None) -> str:
        self.tensors[name] = Tensor(name, shape, dtype, quantization)
        return name

    def constant(self, name: str, value: np.ndarray, quantization: Quantization | None) -> str:
        """Add a constant and return its name. Equal constants, as of the steps of a layer, are added once."""
        plain = np.ascontiguousarray(value).reshape(value.shape)
        content = str(value.dtype), value.shape, hashlib.sha256(plain.data).digest(), quantization
        if content in self._alike:
            return self._alike[content]
        self.constants[name], self._alike[content] = plain, name
        return self.tensor(name, value.shape, str(value.dtype), quantization)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tensors[name].shape

    def quantization(self, name: str) -> Quantization | None:
        return self.tensors[name].quantization

    def scaled(self, name: str) -> Quantization:
        """The quantisation of a tensor that has one."""
        found = self.quantization(name)
        assert found is not None
        return found

    def requantify(self, name: str, quantization: Quantization) -> None:
        """Set the quantisation of a tensor found after its creation."""
        self.tensors[name] = replace(self.tensors[name], quantization=quantization)

    def op(
        self,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        dtype: str,
        quantization: Quantization | None = None,
        name: str = "",
    ) -> str:
        """Add an op and its output of the same name. Returns the name, by default a new one."""
        name = name or self.new_name(attributes.kind)
        self.tensors[name] = Tensor(name, shape, dtype, quantization, self.title)
        if isinstance(attributes, Reshape):
            self._reshaped[name] = inputs[0]
        self.ops.append(Op(name, attributes, tuple(inputs), (name,), pattern=self.pattern))
        return name

    def derive(self, attributes: Attributes, source: str, shape: tuple[int, ...]) -> str:
        """Add an op that moves bytes to a new tensor of the same type and quantisation."""
        tensor = self.tensors[source]
        if isinstance(attributes, Reshape):
            while source in self._reshaped:
                source = self._reshaped[source]
        return self.op(attributes, [source], shape, tensor.dtype, tensor.quantization)

    def looked_up(
        self, view: AxesView, table: np.ndarray, dtype: str, quantization: Quantization | None = None
    ) -> AxesView:
        """Add a function of each element, as a table of the results."""
        name = self.new_name(Lookup.kind)
        inputs = view.name, self.constant(f"{name}_table", table, None)
        return AxesView(self.op(Lookup(), inputs, self.shape(view.name), dtype, quantization, name), view.order)

    def relabelled(self, source: str, quantization: Quantization) -> str:
        """The same integers with another quantisation. Reshapes begin at the result, not at its source."""
        name = self.op(Reshape(), [source], self.shape(source), self.tensors[source].dtype, quantization)
        del self._reshaped[name]
        return name

    def straightened(self, view: AxesView) -> str:
        """The tensor with its axes in the model's order in memory."""
        return self.arranged(view, straight(len(view.order)))

    def arranged(self, view: AxesView, order: Order) -> str:
        """The tensor with its axes in `order` in memory. Transposed only if bytes must move."""
        if view.order == order:
            return view.name
        shape = self.shape(view.name)
        axes = tuple(view.order.index(axis) for axis in order)
        moved = tuple(shape[axis] for axis in axes)
        if (view.name, axes) not in self._arranged:
            attributes = Reshape() if moves_nothing(axes, shape) else Transpose(axes)
            self._arranged[view.name, axes] = self.derive(attributes, view.name, moved)
        return self._arranged[view.name, axes]

    def image(self, view: AxesView, layout: str) -> str:
        """The tensor as NHWC. One-dimensional images get a single row."""
        name = self.arranged(view, layout_order(layout))
        shape = self.shape(name)
        return name if len(shape) == 4 else self.derive(Reshape(), name, (shape[0], 1, *shape[1:]))

    def net(self, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> Net:
        return without_unread(Net(self.name, inputs, outputs, tuple(self.ops), self.tensors, self.constants))
