"""The ops with assembly kernels on the core, and the reasons against others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npukit.accel.cortex_m.op_view import pixels
from npukit.accel.geometry import window_of
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Attributes, AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Reshape, TvmCode
from npukit.net.value_ranges import filter_of


def refusal(net: Net, op: Op) -> str:
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
    if filter_of(net, op) is not None:
        return ""
    if isinstance(op.attributes, Dense):
        return "it has several rows of inputs"
    if isinstance(op.attributes, Conv2d):
        return "it has groups"
    grown = weights.shape[3] != net.tensor(op.inputs[0]).shape[-1]
    return "it has several outputs for each channel" if grown else "it is dilated"


def _add_refusal(net: Net, op: Op) -> str:
    alike = len(list(net.activations(op))) == 2 and net.tensor(op.inputs[0]).shape == net.tensor(op.inputs[1]).shape
    return "" if alike else "it is not a sum of two activations of one shape"


def _pool_refusal(net: Net, op: Op) -> str:
    padding = window_of(net, op).padding
    return f"windows reach outside the input by {padding}" if any(padding) else ""


_REFUSALS: Mapping[type[Attributes], Callable[[Net, Op], str]] = {
    **dict.fromkeys((Conv2d, DepthwiseConv2d, Dense), _filter_refusal),
    **dict.fromkeys((AveragePool, MaxPool), _pool_refusal),
    Reshape: lambda net, op: "",
    Add: _add_refusal,
}
