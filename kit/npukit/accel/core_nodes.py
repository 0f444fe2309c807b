"""A net as input for the choice of kernels: layers with kernels, and dense tensors for all other ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.kernels.helium import takes_pixels
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.network import INPUT, Node
from npukit.accel.cortex_m.op_view import INT8, OpView, pixels, shape_of
from npukit.accel.geometry import window_of
from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import (
    Add,
    Attributes,
    AveragePool,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    MaxPool,
    Reshape,
    Subtract,
    TvmCode,
)
from npukit.net.value_ranges import filter_of, value_ranges


@dataclass(frozen=True)
class CoreNodes:
    """The nodes of a net for the choice of kernels. `owners`: the op of each node, or an empty string. `reasons`: the
    reason why an op has no layer."""

    nodes: tuple[Node, ...]
    owners: tuple[str, ...]
    reasons: Mapping[str, str]


def core_nodes(net: Net, core: CoreType = CORTEX_M4F) -> CoreNodes:
    """The nodes of a net, in the order of the net's ops. A padded convolution of a dense tensor begins with a copy. A
    depthwise convolution also does, unless the input is produced in planes."""
    return _Builder(net, helium=core.assembly == "helium").built()


class _Builder:
    def __init__(self, net: Net, *, helium: bool) -> None:
        self._net, self._homes = net, _homes(net)
        wanted = [op for op in net.ops if op.engine == CORE and not isinstance(op.attributes, Reshape)]
        self._reasons = {op.name: reason for op in wanted if (reason := _refusal(net, op))}
        ranges = value_ranges(net)
        self._layers = {
            op.name: OpView(net, op, ranges.get(op.inputs[0]), helium) for op in wanted if op.name not in self._reasons
        }
        dense = {*self._net.begins, *self._net.ends}
        for op in self._net.ops:
            if op.name not in self._layers and self._homes[op.outputs[0]] == op.outputs[0]:
                dense |= {*op.outputs, *self._net.activations(op)}
        self._dense = {self._homes[name] for name in dense}
        self._nodes: list[Node] = []
        self._owners: list[str] = []
        self._places: dict[str, int] = {}

    def built(self) -> CoreNodes:
        for name in self._net.begins:
            self._add_dense(name, (INPUT,))
        for op in self._net.ops:
            if self._homes[op.outputs[0]] == op.outputs[0]:
                self._add_op(op)
        self._add_dense(self._net.ends[0], tuple(self._place(name) for name in self._net.ends))
        return CoreNodes(tuple(self._nodes), tuple(self._owners), self._reasons)

    def _add_op(self, op: Op) -> None:
        layer = self._layers.get(op.name)
        sources = [self._place(name) for name in self._net.activations(op)]
        if layer is None:
            for name in op.outputs:
                self._add_dense(name, tuple(sources))
            return
        if self._wants_copy(layer):
            copy = Op(f"{op.name}_input", Reshape(), op.inputs[:1], op.inputs[:1])
            sources[0] = self._add(Node.of(OpView(self._net, copy), sources[0]))
        self._places[op.output] = self._add(Node.of(layer, *sources), op.name)

    def _wants_copy(self, layer: OpView) -> bool:
        """True if the input lacks the border or the planes for the layer, and a copy would add them."""
        home = self._homes[layer.op.inputs[0]]
        if not isinstance(layer.attributes, DepthwiseConv2d) or takes_pixels(layer):
            windows = isinstance(layer.attributes, Conv2d | DepthwiseConv2d)
            return windows and any(layer.window.padding) and home in self._dense
        makers = (op for op in self._net.ops if home in op.outputs)
        readers = (op for op in self._net.ops if home in map(self._homes.get, self._net.activations(op)))
        planes = any(isinstance(op.attributes, Conv2d | DepthwiseConv2d) for op in makers if op.name in self._layers)
        planes &= all(isinstance(op.attributes, DepthwiseConv2d) and op.name in self._layers for op in readers)
        if planes and home not in self._dense and layer.input_zero == INT8[0]:
            return False
        source, target = Layout(Order.PLANES16, layer.input_shape), Layout(Order.PIXELS, layer.output_shape)
        return isinstance(depthwise(layer, source, target), Kernel)

    def _place(self, name: str) -> int:
        return self._places[self._homes[name]]

    def _add_dense(self, name: str, inputs: tuple[int, ...]) -> None:
        self._places[name] = self._add(Node(name, shape_of(self._net, name), inputs))

    def _add(self, node: Node, owner: str = "") -> int:
        self._nodes.append(node)
        self._owners.append(owner)
        return len(self._nodes) - 1


def _homes(net: Net) -> dict[str, str]:
    """Tensor that each activation shares its memory with: the shapes differ only by axes of one element."""
    homes = {name: name for name in net.begins}
    for op in net.ops:
        for name in op.outputs:
            homes[name] = homes[op.inputs[0]] if _is_alias(net, op) else name
    return homes


def _is_alias(net: Net, op: Op) -> bool:
    """True for a reshape that drops or adds axes of one element."""
    given, made = (pixels(net.tensor(name).shape) for name in (op.inputs[0], op.outputs[0]))
    return isinstance(op.attributes, Reshape) and given == made


def _refusal(net: Net, op: Op) -> str:
    """The reason why an op has no kernels; empty if it has some."""
    find = _REFUSALS.get(type(op.attributes))
    names = (*net.activations(op), *op.outputs)
    if any(pixels(net.tensor(name).shape) is None for name in names):
        return "it has a batch"
    if find is None:
        if isinstance(op.attributes, TvmCode):
            return "as it is given" if op.attributes.given else "made by TVM"
        return f"there are no kernels for {op.kind}"
    if any(net.tensor(name).dtype != "int8" for name in names):
        return "an activation is not int8"
    return find(net, op)


def _filter_refusal(net: Net, op: Op) -> str:
    weights = net.constant(op, 1)
    if weights is None:
        return "its weights are not constant"
    if filter_of(net, op, rows=True) is not None:
        return ""
    if isinstance(op.attributes, Conv2d):
        return "it has groups"
    grown = weights.shape[3] != net.tensor(op.inputs[0]).shape[-1]
    return "it has several outputs for each channel" if grown else "it is dilated"


def _sum_refusal(net: Net, op: Op) -> str:
    alike = len(list(net.activations(op))) == 2 and net.tensor(op.inputs[0]).shape == net.tensor(op.inputs[1]).shape
    return "" if alike else "its operands are not two activations of one shape"


def _pool_refusal(net: Net, op: Op) -> str:
    padding = window_of(net, op).padding
    return f"windows reach outside the input by {padding}" if any(padding) else ""


_REFUSALS: Mapping[type[Attributes], Callable[[Net, Op], str]] = {
    **dict.fromkeys((Conv2d, DepthwiseConv2d, Dense), _filter_refusal),
    **dict.fromkeys((AveragePool, MaxPool), _pool_refusal),
    Reshape: lambda net, op: "",
    **dict.fromkeys((Add, Subtract), _sum_refusal),
}
