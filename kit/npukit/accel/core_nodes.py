"""A net as the chooser of kernels sees it: layers it has kernels for, and everything else as it must find it, dense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from npukit.accel.cortex_m.from_net import layer_of
from npukit.accel.cortex_m.kernel import Kernel
from npukit.accel.cortex_m.kernels.depthwise import depthwise
from npukit.accel.cortex_m.layer import INT8, ConvLayer, CopyLayer, DenseLayer, DepthwiseLayer, Layer, Opaque, Shape
from npukit.accel.cortex_m.layout import Layout, Order
from npukit.accel.cortex_m.network import INPUT, Node
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Reshape
from npukit.net.value_ranges import value_ranges


@dataclass(frozen=True)
class CoreNodes:
    """`owners` says of which op each node is, empty for those that are none; `reasons` why an op has no layer.

    `homes` says of each activation which one it is under another shape: axes of one element dropped or added.
    """

    nodes: tuple[Node, ...]
    owners: tuple[str, ...]
    reasons: Mapping[str, str]
    homes: Mapping[str, str]


def core_nodes(net: Net) -> CoreNodes:
    """The nodes of a net, in the order of its ops.

    A padded convolution of a dense tensor begins with a copy; so does a depthwise one of what is not made in planes.
    """
    return _Builder(net).built()


class _Builder:
    def __init__(self, net: Net) -> None:
        self._net = net
        self._homes = _homes(net)
        self._layers = {op.name: _layer(net, op) for op in net.ops}
        self._ranges = value_ranges(net)
        self._dense = self._dense_tensors()
        self._nodes: list[Node] = []
        self._owners: list[str] = []
        self._places: dict[str, int] = {}

    def built(self) -> CoreNodes:
        for name in self._net.begins:
            self._places[name] = self._add(_opaque(self._net, name), (INPUT,))
        for op in self._net.ops:
            if self._homes[op.outputs[0]] == op.outputs[0]:
                self._add_op(op)
        self._add(_opaque(self._net, self._net.ends[0]), tuple(self._place(name) for name in self._net.ends))
        reasons = {name: layer for name, layer in self._layers.items() if isinstance(layer, str) and layer}
        return CoreNodes(tuple(self._nodes), tuple(self._owners), reasons, self._homes)

    def _add_op(self, op: Op) -> None:
        layer = self._layers[op.name]
        sources = [self._place(name) for name in self._net.activations(op)]
        if isinstance(layer, str):
            for name in op.outputs:
                self._places[name] = self._add(_opaque(self._net, name), tuple(sources))
            return
        if isinstance(layer, ConvLayer | DepthwiseLayer) and self._wants_copy(op, layer):
            sources[0] = self._add(CopyLayer(f"{op.name}_input", layer.input_shape, layer.input_zero), (sources[0],))
        self._places[op.output] = self._add(self._with_range(op, layer), tuple(sources), op.name)

    def _with_range(self, op: Op, layer: Layer) -> Layer:
        """The layer with the values that it can find in its input."""
        found = self._ranges.get(op.inputs[0])
        if found is None or not isinstance(layer, ConvLayer | DepthwiseLayer | DenseLayer):
            return layer
        return replace(layer, input_range=found.repeated(layer.input_shape[2]))

    def _wants_copy(self, op: Op, layer: ConvLayer | DepthwiseLayer) -> bool:
        """True if its input comes without the border or the planes it wants, and a copy would have them."""
        home = self._homes[op.inputs[0]]
        if isinstance(layer, ConvLayer):
            return any(layer.padding) and home in self._dense
        maker = next((self._layers[each.name] for each in self._net.ops if home in each.outputs), "")
        readers = (self._layers[each.name] for each in self._net.ops if home in self._homes_read(each))
        makes_planes = isinstance(maker, ConvLayer | DepthwiseLayer) and layer.input_zero == INT8[0]
        if home not in self._dense and makes_planes and all(isinstance(reader, DepthwiseLayer) for reader in readers):
            return False
        source, target = Layout(Order.PLANES16, layer.input_shape), Layout(Order.PIXELS, layer.output_shape)
        return isinstance(depthwise(layer, source, target), Kernel)

    def _homes_read(self, op: Op) -> set[str]:
        return {self._homes[name] for name in self._net.activations(op)}

    def _place(self, name: str) -> int:
        return self._places[self._homes[name]]

    def _add(self, layer: Layer, inputs: tuple[int, ...], owner: str = "") -> int:
        self._nodes.append(Node(layer, inputs))
        self._owners.append(owner)
        return len(self._nodes) - 1

    def _dense_tensors(self) -> set[str]:
        """The tensors that ops without kernels write or read."""
        dense = {*self._net.begins, *self._net.ends}
        for op in self._net.ops:
            if isinstance(self._layers[op.name], str) and self._homes[op.outputs[0]] == op.outputs[0]:
                dense |= {*op.outputs, *self._net.activations(op)}
        return {self._homes[name] for name in dense}


def _homes(net: Net) -> dict[str, str]:
    homes = {name: name for name in net.begins}
    for op in net.ops:
        for name in op.outputs:
            same = isinstance(op.attributes, Reshape) and _shape(net, name) == _shape(net, op.inputs[0])
            homes[name] = homes[op.inputs[0]] if same else name
    return homes


def _layer(net: Net, op: Op) -> Layer | str:
    """The op's layer, or why there is no kernel in assembly for it: no reason where the core has nothing to do."""
    if op.engine != CORE or isinstance(op.attributes, Reshape):
        return ""
    if any(_shape(net, name) is None for name in (*net.activations(op), op.output)):
        return "it has a batch"
    return layer_of(net, op)


def _shape(net: Net, name: str) -> Shape | None:
    """Height, width and channels; a tensor of fewer dimensions is a line of pixels, a batch has none."""
    shape = net.tensor(name).shape
    if len(shape) == 4 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > 3:
        return None
    height, width, channels = (1,) * (3 - len(shape)) + tuple(shape)
    return height, width, channels


def _opaque(net: Net, name: str) -> Opaque:
    return Opaque(name, _shape(net, name) or (1, 1, net.tensor(name).elements))
