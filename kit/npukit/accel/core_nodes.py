"""A net as input for the choice of kernels: layers with kernels, and dense tensors for all other ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.kernels.helium import takes_pixels
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.network import INPUT, Node
from npukit.accel.cortex_m.op_view import INT8, OpView, pixels, shape_of
from npukit.accel.cortex_m.support import refusal
from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Conv2d, DepthwiseConv2d, Reshape
from npukit.net.value_ranges import value_ranges


@dataclass(frozen=True)
class CoreNodes:
    """The nodes of a net for the choice of kernels.

    `owners`: the op of each node, or an empty string. `reasons`: the reason why an op has no layer. `homes`: for each
    activation the tensor with the same memory, whose shape differs only by axes of one element.
    """

    nodes: tuple[Node, ...]
    owners: tuple[str, ...]
    reasons: Mapping[str, str]
    homes: Mapping[str, str]


def core_nodes(net: Net, core: CoreType = CORTEX_M4F) -> CoreNodes:
    """The nodes of a net, in the order of the net's ops.

    A padded convolution of a dense tensor begins with a copy. A depthwise convolution also does, unless the input is
    produced in planes.
    """
    return _Builder(net, helium=core.assembly == "helium").built()


class _Builder:
    def __init__(self, net: Net, *, helium: bool) -> None:
        self._net, self._helium = net, helium
        self._homes = _homes(net)
        self._ranges = value_ranges(net)
        self._reasons = {op.name: refusal(net, op) for op in net.ops if _wanted(op)}
        self._layers = {op.name: self._layer(op) for op in net.ops if self._reasons.get(op.name) == ""}
        self._dense = self._dense_tensors()
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
        reasons = {name: reason for name, reason in self._reasons.items() if reason}
        return CoreNodes(tuple(self._nodes), tuple(self._owners), reasons, self._homes)

    def _layer(self, op: Op) -> OpView:
        return OpView(self._net, op, self._ranges.get(op.inputs[0]), self._helium)

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
            return (
                isinstance(layer.attributes, Conv2d | DepthwiseConv2d)
                and any(layer.window.padding)
                and home in self._dense
            )
        makers = [each for each in self._net.ops if home in each.outputs and self._filters(each)]
        readers = (each for each in self._net.ops if home in self._homes_read(each))
        alone = all(isinstance(each.attributes, DepthwiseConv2d) and each.name in self._layers for each in readers)
        if home not in self._dense and makers and layer.input_zero == INT8[0] and alone:
            return False
        source, target = Layout(Order.PLANES16, layer.input_shape), Layout(Order.PIXELS, layer.output_shape)
        return isinstance(depthwise(layer, source, target), Kernel)

    def _filters(self, op: Op) -> bool:
        """True if the layer can produce planes."""
        return op.name in self._layers and isinstance(op.attributes, Conv2d | DepthwiseConv2d)

    def _homes_read(self, op: Op) -> set[str]:
        return {self._homes[name] for name in self._net.activations(op)}

    def _place(self, name: str) -> int:
        return self._places[self._homes[name]]

    def _add_dense(self, name: str, inputs: tuple[int, ...]) -> None:
        self._places[name] = self._add(Node(name, shape_of(self._net, name), inputs))

    def _add(self, node: Node, owner: str = "") -> int:
        self._nodes.append(node)
        self._owners.append(owner)
        return len(self._nodes) - 1

    def _dense_tensors(self) -> set[str]:
        """The tensors that ops without kernels read or write."""
        dense = {*self._net.begins, *self._net.ends}
        for op in self._net.ops:
            if op.name not in self._layers and self._homes[op.outputs[0]] == op.outputs[0]:
                dense |= {*op.outputs, *self._net.activations(op)}
        return {self._homes[name] for name in dense}


def _homes(net: Net) -> dict[str, str]:
    homes = {name: name for name in net.begins}
    for op in net.ops:
        for name in op.outputs:
            homes[name] = homes[op.inputs[0]] if _is_alias(net, op) else name
    return homes


def _is_alias(net: Net, op: Op) -> bool:
    """True for a reshape that drops or adds axes of one element."""
    given, made = (pixels(net.tensor(name).shape) for name in (op.inputs[0], op.outputs[0]))
    return isinstance(op.attributes, Reshape) and given == made


def _wanted(op: Op) -> bool:
    """True if the op may have kernels. A reshape is no work for the core."""
    return op.engine == CORE and not isinstance(op.attributes, Reshape)
