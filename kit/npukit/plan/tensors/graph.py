"""The planner's view of a net: ops that compute, tensors with their own bytes, and the boxes needed by each op.

A reshape is no step, but another view of the same bytes. Only tensors with their own bytes appear in `Graph`.
Conversions at the link are no steps either: the inputs and outputs of `net` are the tensors in memory. `aliases` gives
the operands on which tiles may lie in place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from npukit.accel.interface import Accelerator
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode
from npukit.net.ops.fields import InputRule
from npukit.net.passes.at_link import inside
from npukit.net.receptive import box_needed, input_rules, needs_of_many
from npukit.plan.tensors.boxes import Boxes, from_boxes, to_boxes
from npukit.plan.tensors.reshapes import reshaped, reshaped_box


@dataclass(frozen=True, eq=False)
class Graph:
    net: Net
    _boxes_needed: dict[tuple[str, Box], tuple[tuple[str, Box], ...]] = field(default_factory=dict, init=False)
    _boxes_read: dict[tuple[str, Box], tuple[Box, ...]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "net", inside(self.net))
        assert (late := _read_too_soon(self.net)) is None, f"{self.net.name}: op {late} reads what a later op makes"

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """The ops that are steps, in the net's order."""
        return tuple(op for op in self.net.ops if op.kind != "reshape")

    @cached_property
    def homes(self) -> dict[str, str]:
        """The tensor whose bytes hold each activation: the activation itself, or the origin of a reshape."""
        homes = {name: name for name in self.net.begins}
        for op in self.net.ops:
            for name in op.outputs:
                homes[name] = homes[op.inputs[0]] if op.kind == "reshape" else name
        return homes

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The tensors whose bytes hold the net's outputs, without repetition."""
        return tuple(dict.fromkeys(self.homes[name] for name in self.net.outputs))

    @cached_property
    def kept(self) -> dict[str, str]:
        """The new value of each state at the end of a frame, stored in the state's place."""
        return {state.input: self.homes[state.output] for state in self.net.states}

    @cached_property
    def outlasting(self) -> frozenset[str]:
        """The tensors live at the end of a frame: outputs, and new values of states."""
        return frozenset((*self.outputs, *self.kept.values()))

    @cached_property
    def maker_of(self) -> dict[str, Op]:
        """The op that computes each tensor."""
        return {op.output: op for op in self.ops}

    @cached_property
    def consumers(self) -> dict[str, tuple[int, ...]]:
        """The indices of the ops that read each tensor."""
        found: dict[str, list[int]] = {home: [] for home in self.homes.values()}
        for index, op in enumerate(self.ops):
            for home in dict.fromkeys(self.sources(op)):
                found[home].append(index)
        return {home: tuple(indices) for home, indices in found.items()}

    def sources(self, op: Op) -> list[str]:
        """The tensor whose bytes hold each activation of the op, in the op's order."""
        return [self.homes[name] for name in self.net.activations(op)]

    def shape(self, name: str) -> tuple[int, ...]:
        return self.net.tensor(name).shape

    def element_bytes(self, name: str) -> int:
        return np.dtype(self.net.tensor(name).dtype).itemsize

    @cached_property
    def constants_as(self) -> dict[str, str]:
        """The first op with the same constants as each op. Tiles with equal channels and key then have equal constants
        too."""
        first: dict[Hashable, str] = {}
        return {op.name: first.setdefault(self._made_of(op), op.name) for op in self.ops}

    def _made_of(self, op: Op) -> Hashable:
        """The key of an op's constants: all inputs of their derivation by an engine."""
        operands = [(part, name) for part in op.parts for name in (*part.inputs, *part.outputs)]
        values = tuple((part.kind, self._value_of(part, name)) for part, name in operands)
        return op.engine, tuple(part.attributes for part in op.parts), values

    def form(self, op: Op) -> Hashable:
        """The key of ops with equal work. The values of constants and the scales may differ."""
        names = (name for part in op.parts for name in (*part.inputs, *part.outputs))
        tensors = tuple((self.net.tensor(name).shape, self.net.tensor(name).dtype) for name in names)
        return op.engine, tuple((part.kind, part.attributes) for part in op.parts), tensors

    def _value_of(self, part: Op, name: str) -> Hashable:
        """The key of a tensor: a constant's name, or all fields but the name. For C code the scale is left out, as a
        constant of the code."""
        if name in self.net.constants:
            return name
        tensor = replace(self.net.tensor(name), name="")
        return replace(tensor, quantization=None) if isinstance(part.attributes, TvmCode) else tensor

    @cached_property
    def inputs_of(self) -> dict[str, list[tuple[str, InputRule]]]:
        """Each activation of an op, with the rule for the part needed by a box of the output."""
        net = self.net
        return {op.name: [*zip(net.activations(op), input_rules(net, op), strict=True)] for op in self.ops}

    def needs(self, op: Op, outputs: Boxes) -> Iterator[tuple[str, Boxes]]:
        """The needs of boxes of the op's output: for each activation its home and the needed boxes of the home."""
        for name, rule in self.inputs_of[op.name]:
            boxes = needs_of_many(rule, outputs, self.shape(name))
            home = self.homes[name]
            yield home, boxes if name == home else reshaped(boxes, self.shape(name), self.shape(home))

    def needs_of(self, op: Op, output: Box) -> tuple[tuple[str, Box], ...]:
        """The needs of a single box of the op's output: for each activation its home and the needed box of the home."""
        key = (op.name, output)
        if key not in self._boxes_needed:
            boxes = self.needs(op, from_boxes([output]))
            self._boxes_needed[key] = tuple((home, to_boxes(needed)[0]) for home, needed in boxes)
        return self._boxes_needed[key]

    def shows(self, home: str, box: Box) -> bool:
        """True if the box of a tensor is a box of each of its reshapes too."""
        shape = self.shape(home)
        return all(reshaped_box(box, shape, self.shape(name)).elements == box.elements for name in self.views[home])

    def boxes_read(self, op: Op, output: Box) -> tuple[Box, ...]:
        """The box of each activation read for a box of the op's output, in the activation's own shape."""
        key = (op.name, output)
        if key not in self._boxes_read:
            boxes = (box_needed(rule, output, self.shape(name)) for name, rule in self.inputs_of[op.name])
            self._boxes_read[key] = tuple(boxes)
        return self._boxes_read[key]

    @cached_property
    def views(self) -> dict[str, list[str]]:
        """The reshapes of each tensor."""
        found: dict[str, list[str]] = {home: [] for home in self.consumers}
        for name, home in self.homes.items():
            found[home] += [name] if name != home else []
        return found

    def live_after(self) -> list[tuple[str, ...]]:
        """The tensors live after each op, already computed and read later, in the order of their computation."""
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
    """The first op that reads the output of a later op, or None."""
    unmade = {name for op in net.ops for name in op.outputs}
    for op in net.ops:
        if not unmade.isdisjoint(op.inputs):
            return op.name
        unmade.difference_update(op.outputs)
    return None


Aliases = Mapping[str, tuple[str, ...]]
"""The operands on which each op's output may lie in place, element by element, by op."""


def aliases(graph: Graph, engines: Mapping[str, Accelerator]) -> Aliases:
    """The operands on which each op's output may lie in place.

    The op must be the operand's last reader and read the operand only once, and the op's engine must support the
    overlap.
    """
    found: dict[str, tuple[str, ...]] = {}
    for index, op in enumerate(graph.ops):
        sources, shape = graph.sources(op), graph.shape(op.output)
        may = engines[op.engine].cost(graph.net, op, Box.whole(shape)).aliases
        names = (sources[i] for i in may if sources.count(sources[i]) == 1 and graph.shape(sources[i]) == shape)
        found[op.name] = tuple(
            name for name in names if graph.consumers[name][-1] == index and name not in graph.outlasting
        )
    return found
