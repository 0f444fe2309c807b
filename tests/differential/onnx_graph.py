"""A random ONNX graph in float. ONNX Runtime computes each step at once, therefore shapes and ranges are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from oracles.onnx_runtime import Session

OPSET, IR = 21, 10
LARGEST = 2000
"""Most elements of a tensor between two steps."""


@dataclass(frozen=True)
class Step:
    """The nodes of an op. `keeps`: the op moves values and may keep scales."""

    nodes: Sequence[onnx.NodeProto]
    results: Sequence[str]
    keeps: bool


@dataclass
class Floats:
    """A graph under construction. `values`: the arrays of all inputs, constants and results, for one case."""

    random: np.random.Generator
    steps: list[Step] = field(default_factory=list)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    """Weights that are quantised, and their axis of output channels."""
    biases: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Biases, with the data and the weights that give their scales."""
    kinds: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    """Float results that no step takes."""
    kept: list[str] = field(default_factory=list)
    """Results that leave the graph although a step takes them, and results of other types."""

    def pick(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def often(self, share: float = 0.5) -> bool:
        return bool(self.random.random() < share)

    def one_of(self, choices: Sequence[Any]) -> Any:
        return choices[self.pick(0, len(choices) - 1)]

    def sizes(self, low: int, high: int, count: int) -> tuple[int, ...]:
        return tuple(self.pick(low, high) for _ in range(count))

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def _named(self, value: np.ndarray) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return name

    def input(self, shape: Sequence[int]) -> str:
        spread = float(np.exp(self.random.uniform(-0.7, 1)))
        drawn = self.random.normal(0, spread, tuple(shape))
        self.inputs.append(self._named(np.asarray(drawn, np.float32)))
        return self.inputs[-1]

    def data(self, least: int = 1, most: int = 4, *, shape: Sequence[int] | None = None) -> str:
        """An earlier result, reshaped if it has too few or too many axes, or a new input."""
        known = [name for name in self.free if prod(self.shape(name)) <= LARGEST]
        if shape is not None:
            known = [name for name in known if self.shape(name) == tuple(shape)]
        if not known or self.often(0.15):
            return self.input(shape or self._some_shape(self.pick(least, most)))
        name = self.one_of(known)
        self.free.remove(name)
        if self.often(0.15):
            self.kept.append(name)
        axes = len(self.shape(name))
        if shape is not None or least <= axes <= most:
            return name
        wanted = (
            (*self.shape(name), *[1] * (least - axes)) if axes < least else (-1, *self.shape(name)[axes - least + 1 :])
        )
        return self.add("Reshape", [name, self.integers(*wanted)], keeps=True)

    def _some_shape(self, axes: int) -> tuple[int, ...]:
        if axes == 4:
            return (self.pick(1, 2), self.pick(1, 8), *self.sizes(3, 9, 2))
        return self.sizes(1, 8, axes) if axes < 5 else (1, self.pick(1, 4), *self.sizes(3, 5, axes - 2))

    def constant(self, value: np.ndarray) -> str:
        self.constants.append(self._named(value))
        return self.constants[-1]

    def real(self, *shape: int, low: float | None = None) -> str:
        value = self.random.normal(0, 1, shape)
        return self.constant(np.asarray(value if low is None else low + np.abs(value), np.float32))

    def number(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, shape: Sequence[int], axis: int) -> str:
        channels = np.exp(self.random.uniform(-2, 0, shape[axis]))
        along = channels.reshape(-1, *[1] * (len(shape) - axis % len(shape) - 1))
        depth = prod(shape) / shape[axis]
        name = self.constant((self.random.normal(0, 1, tuple(shape)) * along / depth**0.5).astype(np.float32))
        self.weights[name] = axis
        return name

    def bias(self, size: int, data: str, weights: str) -> str:
        name = self.real(size)
        self.biases[name] = data, weights
        return name

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        count: int = 1,
        *,
        keeps: bool = False,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """Adds a node and returns the name of its first result."""
        names = [f"r{len(self.steps)}_{number}" for number in range(count)]
        node = helper.make_node(
            kind, list(inputs), names, name=f"{kind}_{len(self.steps)}", domain=domain, **attributes
        )
        known = {name: self.values[name] for name in inputs if name}
        fixed = {name: value for name, value in known.items() if name in self.constants}
        varying = {name: value for name, value in known.items() if name not in fixed}
        found = Session(model_of([node], varying, fixed, dict.fromkeys(names)).SerializeToString()).run(varying)
        self.values |= dict(zip(names, found, strict=True))
        self.steps.append(Step([node], names, keeps))
        self.free = [name for name in self.free if name not in inputs]
        self.free += [name for name in names if self.values[name].dtype == np.float32]
        self.kept += [name for name in names if self.values[name].dtype != np.float32]
        return names[0]

    @property
    def outputs(self) -> list[str]:
        """Results that leave the graph."""
        taken = {name for step in self.steps for node in step.nodes for name in node.input}
        whole = [name for name in self.kept if self.values[name].dtype != np.float32 and name not in taken]
        return [*self.free, *whole, *(name for name in self.kept if name in taken and self._is_real(name))]

    def _is_real(self, name: str) -> bool:
        return self.values[name].dtype == np.float32

    def model(self) -> onnx.ModelProto:
        nodes = [node for step in self.steps for node in step.nodes]
        varying = {name: self.values[name] for name in self.inputs}
        fixed = {name: self.values[name] for name in self.constants}
        return model_of(nodes, varying, fixed, {name: self.values[name] for name in self.outputs})


def _stated(name: str, value: np.ndarray | None) -> onnx.ValueInfoProto:
    """An input or output with type and shape, if they are known."""
    if value is None:
        return onnx.ValueInfoProto(name=name)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray | None],
) -> onnx.ModelProto:
    ends, results = ([_stated(*pair) for pair in each.items()] for each in (inputs, outputs))
    fixed = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(list(nodes), "graph", ends, results, fixed)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=IR))
