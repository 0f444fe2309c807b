"""ONNX graphs after constant folding: known values computed, known conditions resolved, loops unrolled.

Exporters write sizes as chains of Shape, Gather, Concat and the like. Once the inputs' shapes are closed, these are
constants. Quantising nodes stay even if their inputs are constant, because they say how weights are stored. If a
condition is known only at run time, both branches are computed and Where selects the result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tvm.relax.frontend.onnx import onnx_frontend

from npukit.errors import NpukitError
from npukit.frontend.onnx.bodies import body_of, defined_by_ops
from npukit.frontend.onnx.neutral import unchanged
from npukit.frontend.onnx.node import schema_of
from npukit.frontend.onnx.ops import CONVERTERS
from npukit.frontend.onnx.spelled import spelled
from npukit.frontend.onnx.spelling import Spelling
from npukit.net.limits import ELEMENTS, OPS, STEPS, TENSOR_BYTES, check_shape

FOLDED = frozenset(
    (
        *("Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Concat", "Constant", "ConstantOfShape", "CumSum", "Div"),
        *("Equal", "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual"),
        *("Identity", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "Pow", "Range"),
        *("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "ScatterND", "Slice", "Split", "Sqrt"),
        *("Squeeze", "Sub", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
    )
)
"""Ops for sizes and masks. Each is fast for the size of its result."""
DEFINED = defined_by_ops({*onnx_frontend._get_convert_map(), *CONVERTERS})
"""Ops read by their definition in other ops."""
UNBOUNDED = frozenset(("NonZero",))
"""Ops whose result size depends on the values of the input, but is at most a few times the input's size."""
AXES_ARE_INPUTS = 13
"""First opset whose Unsqueeze takes its axes as an input."""
NAMED = 1 << 12
"""Most elements of a constant whose values may determine the shape of a result."""


def folded(
    model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]], name: str, custom: Collection[str] = ()
) -> onnx.ModelProto:
    """The folded model for inputs of the given shapes. `name`: the file's name in errors; `custom`: ops of users."""
    fold = _Fold(name, list(model.opset_import), {value.name for value in model.graph.output}, frozenset(custom))
    for tensor in model.graph.initializer:
        fold.hold(tensor)
    for value in model.graph.input:
        kind = TypeProto()
        kind.CopyFrom(value.type)
        if value.name in shapes:
            kind = helper.make_tensor_type_proto(value.type.tensor_type.elem_type, shapes[value.name])
        fold.types.setdefault(value.name, kind)
    fold.names.update(_names_in(model.graph))
    fold.walk(model.graph.node, {})
    return fold.finished(model)


@dataclass
class _Fold:
    """The new graph. Values of branches get new names, because a branch may be inlined several times."""

    name: str
    imports: list[Any]
    wanted: set[str]
    """The model's outputs. Some node must compute each of them."""
    custom: frozenset[str] = frozenset()
    names: set[str] = field(default_factory=set)
    types: dict[str, TypeProto] = field(default_factory=dict)
    known: dict[str, onnx.TensorProto] = field(default_factory=dict)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    total: int = 0
    walked: int = 0
    depth: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    def hold(self, tensor: onnx.TensorProto) -> None:
        """Registers a constant."""
        self.known[tensor.name] = tensor
        self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)

    def value(self, name: str) -> np.ndarray:
        if name not in self.values:
            self.values[name] = numpy_helper.to_array(self.known[name])
        return self.values[name]

    def walk(self, nodes: Sequence[onnx.NodeProto], renamed: Mapping[str, str]) -> dict[str, str]:
        """Rewrites nodes in order. Returns the new names of a branch's values."""
        names = dict(renamed)
        for node in nodes:
            self.walked += 1
            OPS.check(self.walked, self.name)
            moved = onnx.NodeProto()
            moved.CopyFrom(node)
            moved.input[:] = [names.get(each, each) for each in node.input]
            if names or self.depth:
                for place, each in enumerate(node.output):
                    names[each] = moved.output[place] = self._new(each) if each else ""
            while len(moved.output) > 1 and not moved.output[-1]:
                del moved.output[-1]
            self._place(moved, names)
        return names

    def _place(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        """Adds a node, or other nodes in its place."""
        parts = None if node.op_type in self.custom else spelled(self._spelling(node))
        standard = node.domain in ("", "ai.onnx")
        if parts is not None:
            for part in parts:
                self._keep(part, alias=True)
        elif node.op_type == "If" and standard:
            self._branches(node, names)
        elif node.op_type == "Loop" and standard:
            self._loop(node, names)
        elif node.op_type in DEFINED - self.custom and standard:
            self._define(node)
        elif not self._fold(node):
            self._keep(node)

    def _define(self, node: onnx.NodeProto) -> None:
        """The node by its definition in other ops. Values within get new names."""
        body = body_of(node, self.imports, self.types.get)
        if not body:
            what = f"{self.name}: {node.name or 'unnamed'} ({node.op_type})"
            raise NpukitError(f"{what} has inputs whose types are known only at run time", tries=["--input NAME=SHAPE"])
        self.depth += 1
        names = self.walk(body, {each: each for each in node.input})
        self.depth -= 1
        for output in filter(None, node.output):
            self._keep(helper.make_node("Identity", [names[output]], [output]), alias=True)

    def _spelling(self, node: onnx.NodeProto) -> Spelling:
        return Spelling(
            node,
            self.opset,
            self._sizes,
            self._known,
            self._constant,
            self._new,
        )

    def _sizes(self, name: str) -> tuple[int, ...] | None:
        return _shape(self.types.get(name))

    def _known(self, name: str) -> np.ndarray | None:
        return self.value(name) if name in self.known else None

    @property
    def opset(self) -> int:
        return next(entry.version for entry in self.imports if entry.domain in ("", "ai.onnx"))

    def _new(self, name: str) -> str:
        made = next(f"{name}.{number}" for number in self._numbers if f"{name}.{number}" not in self.names)
        self.names.add(made)
        return made

    def _branches(self, node: onnx.NodeProto, names: dict[str, str]) -> None:
        """Inlines the selected branch, or both if the condition is known only at run time."""
        graphs = {each.name: each.g for each in node.attribute}
        if set(graphs) != {"then_branch", "else_branch"}:
            raise NpukitError(f"{self.name}: {node.name or 'an If'} lacks a branch")
        if node.input[0] in self.known:
            chosen = "then_branch" if self.value(node.input[0]).any() else "else_branch"
            for made, output in zip(self._branch(graphs[chosen], names), node.output, strict=False):
                self._keep(helper.make_node("Identity", [made], [output]), alias=True)
            return
        parts = zip(*(self._branch(graphs[each], names) for each in ("then_branch", "else_branch")), strict=False)
        for (one, other), output in zip(parts, node.output, strict=False):
            self._keep(helper.make_node("Where", [node.input[0], one, other], [output], name=node.name))

    def _loop(self, node: onnx.NodeProto, names: Mapping[str, str]) -> None:
        """Unrolls a loop, whose number of steps must be known at import."""
        place = f"{self.name}: {node.name or 'a Loop'}"
        body = next((each.g for each in node.attribute if each.name == "body"), onnx.GraphProto())
        trips, goes_on, *values = node.input
        last = int(self._length(trips, place).item()) if trips else STEPS.most + 1
        goes_on = goes_on or self._constant(np.array(True))
        if len(body.input) != 2 + len(values) or len(body.output) != 1 + len(node.output):
            raise NpukitError(f"{place} does not have the values that its body takes and gives")
        scans: list[list[str]] = [[] for _ in body.output[1 + len(values) :]]
        for step in range(last):
            STEPS.check(step, f"{place}, as far as it is unrolled")
            if not self._length(goes_on, place).any():
                break
            given = (self._constant(np.array(step, np.int64)), goes_on, *values)
            taken = dict(zip((value.name for value in body.input), given, strict=True))
            goes_on, *made = self._branch(body, {**names, **taken})
            values = made[: len(values)]
            for scan, part in zip(scans, made[len(values) :], strict=True):
                scan.append(self._with_axis(part))
        for made, output in zip(values, node.output, strict=False):
            self._keep(helper.make_node("Identity", [made], [output]), alias=True)
        for scan, output in zip(scans, node.output[len(values) :], strict=True):
            self._keep(helper.make_node("Concat", scan, [output], axis=0), alias=True)

    def _length(self, name: str, place: str) -> np.ndarray:
        """The value of an input with a loop's length or condition."""
        if name not in self.known:
            raise NpukitError(f"{place} takes as many steps as frames decide", tries=["--input NAME=8, for an input"])
        return self.value(name)

    def _constant(self, value: np.ndarray) -> str:
        """The name of a new constant."""
        self.hold(numpy_helper.from_array(value, self._new("constant")))
        return next(reversed(self.known))

    def _with_axis(self, name: str) -> str:
        """The name of a value with an additional first axis of size 1."""
        made = self._new(name)
        old = self.opset < AXES_ARE_INPUTS
        inputs = [name] if old else [name, self._constant(np.array([0], np.int64))]
        node = helper.make_node("Unsqueeze", inputs, [made])
        node.attribute.extend([helper.make_attribute("axes", [0])] if old else [])
        self._keep(node, alias=True)
        return made

    def _branch(self, graph: onnx.GraphProto, names: Mapping[str, str]) -> list[str]:
        """Inlines a branch or a loop body. Returns the new names of its outputs."""
        inner = dict(names)
        for tensor in graph.initializer:
            held = onnx.TensorProto()
            held.CopyFrom(tensor)
            held.name = inner[tensor.name] = self._new(tensor.name)
            self.hold(held)
        self.depth += 1
        inner = self.walk(graph.node, inner)
        self.depth -= 1
        return [inner.get(value.name, value.name) for value in graph.output]

    def _keep(self, node: onnx.NodeProto, *, alias: bool = False) -> None:
        """Adds the node and infers the types of its results. `alias`: fold the node if its inputs are constant."""
        if alias and self._fold(node):
            return
        self.types.update(self._inferred(node))
        self._empty([each for each in node.output if 0 in (self._sizes(each) or ())])
        for output, given in unchanged(node, self.types.get, self._known, self._sizes).items():
            node = helper.make_node("Identity", [given], [output], name=node.name)
        if node.op_type == "Concat":  # exporters leave pads of no size, but no tensor may be empty
            parts = [each for each in node.input if each not in self.known or 0 not in self.known[each].dims]
            node.input[:] = parts or node.input[:1]
        self.nodes.append(node)

    def _inferred(self, node: onnx.NodeProto) -> dict[str, TypeProto]:
        given = [each for each in node.input if each]
        if not all(each in self.types for each in given):
            return {}
        data = {each: self.known[each] for each in given if each in self.known and prod(self.known[each].dims) <= NAMED}
        versions = {entry.domain: entry.version for entry in self.imports}
        version = versions.get(node.domain, versions.get("ai.onnx" if not node.domain else "", 1))
        try:
            schema = schema_of(node.op_type, version, "" if node.domain == "ai.onnx" else node.domain)
            found = onnx.shape_inference.infer_node_outputs(
                schema, node, {each: self.types[each] for each in given}, data, opset_imports=self.imports
            )
        except Exception:
            return {}
        for each, kind in found.items():
            check_shape(_shape(kind) or (), f"{self.name}: {each!r}")
        return found

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Tries to compute the node with ONNX's reference evaluator. Returns False if the node has to stay."""
        outputs = [each for each in node.output if each]
        if node.domain not in ("", "ai.onnx"):
            return False
        if node.op_type in ("Shape", "Size"):
            return self._shape(node)
        if any(each in self.wanted for each in outputs):
            return False
        given, types = dict.fromkeys(each for each in node.input if each), self._inferred(node)
        if node.op_type not in FOLDED:
            return False
        if outputs and all(0 in (_shape(types.get(each)) or ()) for each in outputs):
            self.types.update(types)
            return self._empty(outputs)
        if not all(each in self.known for each in given):
            return False
        if node.op_type not in UNBOUNDED and any(_shape(types.get(each)) is None for each in outputs):
            return False
        graph = helper.make_graph([node], "known", [], [helper.make_empty_tensor_value_info(each) for each in outputs])
        graph.initializer.extend(self.known[each] for each in given)
        try:
            found = ReferenceEvaluator(helper.make_model(graph, opset_imports=self.imports)).run(None, {})
            arrays = [np.asarray(each) for each in found]
        except Exception:
            return False
        for name, value in zip(outputs, arrays, strict=True):
            self._found(name, value)
        return True

    def _empty(self, outputs: Sequence[str]) -> bool:
        """Registers results without elements, whose values need no computation."""
        for each in outputs:
            kind = helper.tensor_dtype_to_np_dtype(self.types[each].tensor_type.elem_type)
            self._found(each, np.zeros(self._sizes(each) or (), kind))
        return True

    def _shape(self, node: onnx.NodeProto) -> bool:
        shape = _shape(self.types.get(node.input[0]))
        if shape is None:
            return False
        attributes = {each.name: each.i for each in node.attribute}
        part = shape[attributes.get("start", 0) : attributes.get("end", len(shape))]
        value = np.array(part if node.op_type == "Shape" else prod(shape), np.int64)
        if node.output[0] in self.wanted:
            self._keep(helper.make_node("Identity", [self._constant(value)], node.output))
        else:
            self._found(node.output[0], value)
        return True

    def _found(self, name: str, value: np.ndarray) -> None:
        ELEMENTS.check(value.size, f"{self.name}: {name!r}")
        self.total += value.nbytes
        TENSOR_BYTES.check(self.total, self.name)
        self.hold(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))

    def finished(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The model with the new nodes and the constants they read."""
        whole, read = onnx.ModelProto(), {each for node in self.nodes for each in node.input} | self.wanted
        whole.CopyFrom(model)
        del whole.graph.node[:], whole.graph.initializer[:]
        given = {tensor.name for tensor in model.graph.initializer}
        whole.graph.node.extend(self.nodes)
        whole.graph.initializer.extend(tensor for name, tensor in self.known.items() if name in read or name in given)
        return whole


def _shape(kind: TypeProto | None) -> tuple[int, ...] | None:
    """The shape of a tensor's type; None unless all sizes are known."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    return tuple(size.dim_value for size in sizes) if all(size.HasField("dim_value") for size in sizes) else None


def _names_in(graph: onnx.GraphProto) -> Iterator[str]:
    """All names of values, including names in branches."""
    yield from (each.name for each in (*graph.initializer, *graph.input))
    for node in graph.node:
        yield from node.output
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _names_in(attribute.g)
