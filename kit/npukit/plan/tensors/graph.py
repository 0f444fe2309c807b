"""A net as the planner sees it: ops that compute, tensors with bytes of their own, and who needs which box of them.

A reshape is no step: its output is another view of the bytes of its input. `Graph` speaks of those bytes only. What the
link converts is no step either: the inputs and outputs of `net` are what lies in memory. `aliases` tells which tiles
may lie on one of their operands, as it is not read later.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from npukit.accel.interface import Accelerator
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.passes.at_link import inside
from npukit.net.receptive import box_needed, input_rules, needs_of_many
from npukit.net.specs.fields import InputRule
from npukit.plan.tensors.boxes import Boxes, from_boxes, to_boxes
from npukit.plan.tensors.reshapes import reshaped, reshaped_box


@dataclass(frozen=True, eq=False)
class Graph:
    net: Net

    def __post_init__(self) -> None:
        object.__setattr__(self, "net", inside(self.net))
        assert (late := _read_too_soon(self.net)) is None, f"{self.net.name}: op {late} reads what a later op makes"

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops that are steps, in the net's order."""
        return tuple(op for op in self.net.ops if op.kind != "reshape")

    @cached_property
    def homes(self) -> dict[str, str]:
        """The tensor whose bytes each activation lies on: itself, or what it is a reshape of."""
        homes = {name: name for name in self.net.begins}
        for op in self.net.ops:
            for name in op.outputs:
                homes[name] = homes[op.inputs[0]] if op.kind == "reshape" else name
        return homes

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The tensors with bytes of their own that the net's outputs lie on, each once."""
        return tuple(dict.fromkeys(self.homes[name] for name in self.net.outputs))

    @cached_property
    def kept(self) -> dict[str, str]:
        """The tensor that each state becomes at the end of a frame, in whose place that lies."""
        return {state.input: self.homes[state.output] for state in self.net.states}

    @cached_property
    def outlasting(self) -> frozenset[str]:
        """The tensors that must be there when a frame ends: outputs, and what becomes of states."""
        return frozenset((*self.outputs, *self.kept.values()))

    @cached_property
    def maker_of(self) -> dict[str, Op]:
        """The op that makes each tensor with bytes of its own."""
        return {op.output: op for op in self.ops}

    @cached_property
    def consumers(self) -> dict[str, tuple[int, ...]]:
        """The indices of the ops that read each tensor with bytes of its own."""
        found: dict[str, list[int]] = {home: [] for home in self.homes.values()}
        for index, op in enumerate(self.ops):
            for home in dict.fromkeys(self.sources(op)):
                found[home].append(index)
        return {home: tuple(indices) for home, indices in found.items()}

    def sources(self, op: Op) -> list[str]:
        """The home of each activation of the op, in its order."""
        return [self.homes[name] for name in self.net.activations(op)]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.net.tensor(name).shape

    def element_bytes(self, name: str) -> int:
        return np.dtype(self.net.tensor(name).dtype).itemsize

    @cached_property
    def constants_as(self) -> dict[str, str]:
        """The first op that has the same constants as each op: in all tiles of the same channels and key."""
        first: dict[Hashable, str] = {}
        return {op.name: first.setdefault(self._made_of(op), op.name) for op in self.ops}

    def _made_of(self, op: Op) -> Hashable:
        """All that an engine makes an op's constants of."""
        operands = ((part, name) for part in op.parts for name in (*part.inputs, *part.outputs))
        kinds = tuple(part.attributes for part in op.parts)
        return op.engine, kinds, tuple((part.kind, self._value_of(part, name)) for part, name in operands)

    def form(self, op: Op) -> Hashable:
        """The key of ops that compute alike: the same but for the values of their constants and their scales."""
        names = (name for part in op.parts for name in (*part.inputs, *part.outputs))
        tensors = tuple((self.net.tensor(name).shape, self.net.tensor(name).dtype) for name in names)
        return op.engine, tuple((part.kind, part.attributes) for part in op.parts), tensors

    def _value_of(self, part: Op, name: str) -> Hashable:
        """A constant by name, any other tensor by all but its name; of what C reads, its scale is in the C."""
        if name in self.net.constants:
            return name
        tensor = replace(self.net.tensor(name), name="")
        return replace(tensor, quantization=None) if isinstance(part.attributes, TvmCode) else tensor

    @cached_property
    def _inputs(self) -> dict[str, list[tuple[str, InputRule]]]:
        every = {op.name: (self.net.activations(op), input_rules(self.net, op)) for op in self.ops}
        return {name: list(zip(*both, strict=True)) for name, both in every.items()}

    def inputs_of(self, op: Op) -> list[tuple[str, InputRule]]:
        """Each activation, and what of it a box of the output needs."""
        return self._inputs[op.name]

    def needs(self, op: Op, outputs: Boxes) -> Iterator[tuple[str, Boxes]]:
        """The needs of boxes of the op's output: each activation's home, and the boxes of it that they need."""
        for name, rule in self.inputs_of(op):
            boxes = needs_of_many(rule, outputs, self.shape(name))
            home = self.homes[name]
            yield home, boxes if name == home else reshaped(boxes, self.shape(name), self.shape(home))

    @cached_property
    def _boxes_needed(self) -> dict[tuple[str, Box], tuple[tuple[str, Box], ...]]:
        return {}

    def needs_of(self, op: Op, output: Box) -> tuple[tuple[str, Box], ...]:
        """The needs of one box of the op's output: each activation's home, and the box of it that it needs."""
        key = (op.name, output)
        if key not in self._boxes_needed:
            boxes = self.needs(op, from_boxes([output]))
            self._boxes_needed[key] = tuple((home, to_boxes(needed)[0]) for home, needed in boxes)
        return self._boxes_needed[key]

    def shows(self, home: str, box: Box) -> bool:
        """True if a box of a tensor is a box of each of its reshapes."""
        shape = self.shape(home)
        return all(reshaped_box(box, shape, self.shape(name)).elements == box.elements for name in self.views(home))

    @cached_property
    def _boxes_read(self) -> dict[tuple[str, Box], tuple[Box, ...]]:
        return {}

    def boxes_read(self, op: Op, output: Box) -> tuple[Box, ...]:
        """The box of each activation that one box of the op's output reads, as the op sees it."""
        key = (op.name, output)
        if key not in self._boxes_read:
            inputs = self.inputs_of(op)
            self._boxes_read[key] = tuple(box_needed(rule, output, self.shape(name)) for name, rule in inputs)
        return self._boxes_read[key]

    def views(self, home: str) -> list[str]:
        """The reshapes that lie on a tensor."""
        return self._views.get(home, [])

    @cached_property
    def _views(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, home in self.homes.items():
            if name != home:
                found.setdefault(home, []).append(name)
        return found

    def live_after(self) -> list[tuple[str, ...]]:
        """The tensors that are live after each op, made by then and read later, in the order in which they are made."""
        ends = dict.fromkeys(self.outlasting, len(self.ops))
        read = (name for name in self.net.begins if name in ends or self.consumers[name])
        live, found = dict.fromkeys(read), list[tuple[str, ...]]()
        for index, op in enumerate(self.ops):
            live[op.output] = None
            for name in (*self.sources(op), op.output):
                if ends.get(name, max(self.consumers[name], default=0)) <= index:
                    live.pop(name, None)
            found.append(tuple(live))
        return found


def _read_too_soon(net: Net) -> str | None:
    """The first op that reads what an op behind it makes."""
    unmade = {name for op in net.ops for name in op.outputs}
    for op in net.ops:
        if not unmade.isdisjoint(op.inputs):
            return op.name
        unmade.difference_update(op.outputs)
    return None


Aliases = Mapping[str, tuple[str, ...]]
"""The tensors that an op's tiles may lie on, element by element, by op."""


def aliases(graph: Graph, engines: Mapping[str, Accelerator]) -> Aliases:
    """The operands of each op that it is the last to read, and reads once, if its engine can lay its output there."""
    found: dict[str, tuple[str, ...]] = {}
    for index, op in enumerate(graph.ops):
        sources, shape = graph.sources(op), graph.shape(op.output)
        may = engines[op.engine].cost(graph.net, op, Box.whole(shape)).aliases
        names = (sources[i] for i in may if sources.count(sources[i]) == 1 and graph.shape(sources[i]) == shape)
        found[op.name] = tuple(
            name for name in names if graph.consumers[name][-1] == index and name not in graph.outlasting
        )
    return found
