"""Random networks with states. Ops cut, join, reshape, read and write states, several times or never."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from codegen.random_ops import Bundle
from npukit.net import ops
from npukit.net.net import Net, Op
from npukit.net.passes.simplify import without_unread
from npukit.net.passes.states import Pair, with_states
from npukit.net.tensor import Quantization

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((1, 24), (1, 4, 6), (1, 2, 3, 4), (1, 48), (1, 1, 48), (1, 4, 3, 4), (1, 16), (1, 7))
"""Shapes of inputs and states. The list is short, because two tensors should often have equally many elements."""

SHARED = Quantization((0.05,), (3,)), Quantization((0.08,), (-20,))
"""Quantisation of most tensors. Equal quantisation lets tensors be joined directly."""


def remembering(random: np.random.Generator) -> Net:
    """A net of one or two inputs, one to three states, and ops that read inputs and states."""
    growing = _Growing(Bundle(random))
    for _ in range(growing.pick(1, 2)):
        growing.given()
    states = [growing.given(("int8", "int8", "int8", "int16")[growing.pick(0, 3)]) for _ in range(growing.pick(1, 3))]
    for _ in range(growing.pick(2, 10)):
        growing.step()
    becomes = [growing.becomes(state, states) for state in states]
    return growing.net(states, becomes)


@dataclass
class _Growing:
    """A net under construction. `pool`: int8 tensors readable by the next op."""

    bundle: Bundle
    pool: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """New values of states so far."""

    def pick(self, low: int, high: int) -> int:
        return self.bundle.pick(low, high)

    def given(self, dtype: str = "int8") -> str:
        """An input or a future state. A tensor of 16 bits is requantised to 8 bits for the ops."""
        name = self.bundle.activation(SHAPES[self.pick(0, len(SHAPES) - 1)], self.meaning(), dtype)
        if dtype == "int8":
            self.pool.append(name)
        else:
            self.op(ops.Requantize(), name)
        return name

    def meaning(self) -> Quantization:
        return SHARED[min(self.pick(0, 4), 1)] if self.pick(0, 5) else self.bundle.quantization()

    def shape(self, name: str) -> Shape:
        return self.bundle.tensors[name].shape

    def any(self) -> str:
        """A tensor among the first, where the states are, among the last, or any."""
        last = len(self.pool) - 1
        low, high = ((0, min(3, last)), (max(last - 2, 0), last), (0, last))[self.pick(0, 2)]
        return self.pool[self.pick(low, high)]

    def op(self, attributes: ops.Attributes, *inputs: str, like: str | None = None) -> str:
        """Append an op. The output has the quantisation of `like`, or a random one."""
        given = self.bundle.tensors[like] if like else None
        quantization, dtype = (given.quantization, given.dtype) if given else (self.meaning(), "int8")
        self.bundle.add(attributes, *inputs, quantization=quantization, dtype=dtype)
        self.pool += [self.bundle.ops[-1].output] if dtype == "int8" else []
        return self.bundle.ops[-1].output

    def step(self) -> None:
        steps: tuple[Callable[[str], str], ...]
        steps = (self.cut, self.shaped, self.turned, self.joined, self.dense, self.looked_up, self.mixed, self.image)
        steps[self.pick(0, len(steps) - 1)](self.any())

    def cut(self, source: str) -> str:
        shape = self.shape(source)
        begin = tuple(self.pick(0, size - 1) if self.pick(0, 2) == 0 else 0 for size in shape)
        end = tuple(self.pick(b + 1, size) if self.pick(0, 1) else size for b, size in zip(begin, shape, strict=True))
        strides = tuple(2 if self.pick(0, 9) == 0 else 1 for _ in shape)
        return self.op(ops.Slice(begin, end, strides), source, like=source)

    def shaped(self, source: str) -> str:
        count = prod(self.shape(source))
        choices = [(1, count), *((1, rows, count // rows) for rows in range(1, count + 1) if count % rows == 0)]
        return self.as_shape(source, choices[self.pick(0, len(choices) - 1)])

    def turned(self, source: str) -> str:
        axes = 1 + self.bundle.random.permutation(len(self.shape(source)) - 1)
        return self.op(ops.Transpose((0, *axes.tolist())), source, like=source)

    def joined(self, source: str) -> str:
        """Join a tensor with up to two others as rows, requantised to the same scale."""
        parts = [self.flat(source), *(self.flat(self.any()) for _ in range(self.pick(0, 2)))]
        return self.op(ops.Concat(1), *(self.meant_as(part, source) for part in parts), like=source)

    def dense(self, source: str) -> str:
        return self.dense_of(source, (3, 8, 16, 24)[self.pick(0, 3)])

    def dense_of(self, source: str, outputs: int) -> str:
        depth = self.shape(source)[-1]
        return self.op(ops.Dense(), source, *self.bundle.filter((outputs, depth), 0, depth))

    def looked_up(self, source: str) -> str:
        return self.op(ops.Lookup(), source, self.bundle.constant(self.bundle.int8((256,)), None))

    def mixed(self, source: str) -> str:
        """Combine two tensors with equally many elements, or a tensor with itself."""
        shape = self.shape(source)
        alike = [name for name in self.pool if prod(self.shape(name)) == prod(shape)]
        other = self.as_shape(alike[self.pick(0, len(alike) - 1)], shape)
        return self.op((ops.Add(), ops.Multiply(), ops.Subtract())[self.pick(0, 2)], source, other)

    def image(self, source: str) -> str:
        """A convolution or a pool, if the tensor has four dimensions."""
        if len(shape := self.shape(source)) != 4:
            return self.mixed(source)
        if self.pick(0, 1):
            return self.op(ops.MaxPool((2, 2), (1, 1), (0, 0, 1, 1)), source, like=source)
        weights = self.bundle.filter((self.pick(2, 8), 2, 2, shape[3]), 0, 4 * shape[3])
        return self.op(ops.Conv2d(padding=(0, 0, 1, 1)), source, *weights)

    def flat(self, source: str) -> str:
        return self.as_shape(source, (1, prod(self.shape(source))))

    def as_shape(self, source: str, shape: Shape) -> str:
        if shape == self.shape(source):
            return source
        name = f"reshape_{len(self.bundle.ops)}"
        self.bundle.tensors[name] = replace(self.bundle.tensors[source], name=name, shape=shape)
        self.bundle.ops.append(Op(name, ops.Reshape(), (source,), (name,)))
        self.pool += [name] if self.bundle.tensors[name].dtype == "int8" else []
        return name

    def meant_as(self, source: str, like: str) -> str:
        given, wanted = self.bundle.tensors[source], self.bundle.tensors[like]
        alike = (given.quantization, given.dtype) == (wanted.quantization, wanted.dtype)
        return source if alike else self.op(ops.Requantize(), source, like=like)

    def becomes(self, state: str, states: list[str]) -> str:
        kinds = (self.what_fits, self.shifted, self.shifted, self.computed, self.computed, self.chosen, self.taken)
        made = kinds[self.pick(0, len(kinds) - 1)](state, states)
        self.made.append(made)
        return made

    def what_fits(self, state: str, states: list[str]) -> str:
        """Any tensor with the right number of elements, even another state's new value. Without one, the value is
        computed."""
        shape = self.shape(state)
        fitting = [name for name in (*self.pool, *self.made) if prod(self.shape(name)) == prod(shape)]
        if not fitting:
            return self.computed(state, states)
        return self.as_shape(fitting[self.pick(0, len(fitting) - 1)], shape)

    def shifted(self, state: str, states: list[str]) -> str:
        """The state without its first elements, followed by elements of another tensor."""
        count, new = prod(self.shape(state)), self.flat(self.any())
        size = self.pick(1, min(count - 1, self.shape(new)[1]))
        kept = self.op(ops.Slice((0, size), (1, count), (1, 1)), self.flat(state), like=state)
        added = self.op(ops.Slice((0, 0), (1, size), (1, 1)), new, like=new)
        both = self.op(ops.Concat(1), kept, self.meant_as(added, state), like=state)
        return self.as_shape(both, self.shape(state))

    def computed(self, state: str, states: list[str]) -> str:
        return self.as_shape(self.dense_of(self.flat(self.any()), prod(self.shape(state))), self.shape(state))

    def chosen(self, state: str, states: list[str]) -> str:
        """The old state or a new value, selected by an input."""
        shape, fitting = self.shape(state), self.meant_as(self.what_fits(state, states), state)
        narrow = tuple(size if self.pick(0, 1) else 1 for size in shape)
        self.bundle.inputs.append(self.bundle.tensor(narrow, None, "bool"))
        return self.op(ops.Select(), self.bundle.inputs[-1], fitting, state, like=state)

    def taken(self, state: str, states: list[str]) -> str:
        """An unchanged input, or any state, including the state itself."""
        shape = self.shape(state)
        others = [name for name in states if prod(self.shape(name)) == prod(shape)]
        if self.pick(0, 1):
            return self.as_shape(others[self.pick(0, len(others) - 1)], shape)
        return self.bundle.activation(shape, self.bundle.tensors[state].quantization, self.bundle.tensors[state].dtype)

    def net(self, states: list[str], becomes: list[str]) -> Net:
        """Finish the net. The outputs are some of the ops' results, old states and new states."""
        outputs = [op.output for op in self.bundle.ops if self.pick(0, 3) == 0] or [self.looked_up(self.any())]
        outputs += [name for name in (*states, *becomes) if self.pick(0, 4) == 0]
        outputs.append(self.looked_up(self.pool[0]))
        outputs = list(dict.fromkeys(outputs))
        whole = replace(self.bundle.net(), outputs=(*outputs, *becomes))
        whole = without_unread(whole)
        read = {name for op in whole.ops for name in op.inputs} | {*states, *whole.outputs}
        whole = replace(whole, inputs=tuple(name for name in whole.inputs if name in read))
        pairs = [self.pair(whole, state, len(outputs) + place) for place, state in enumerate(states)]
        return with_states(whole, pairs)

    def pair(self, net: Net, state: str, output: int) -> Pair:
        tensor = net.tensor(state)
        begins = self.bundle.random.integers(-128, 128, tensor.shape).astype(tensor.dtype)
        return net.inputs.index(state), output, np.full_like(begins, 3) if self.pick(0, 1) else begins
