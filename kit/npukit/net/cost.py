"""The cost of an op on any engine: multiply-accumulates and bytes."""

from __future__ import annotations

from math import prod

from npukit.net.net import Net, Op
from npukit.net.ops import TvmCode


def macs(net: Net, op: Op) -> int:
    """Multiply-accumulates as the model states them, padding included."""
    return sum(_macs(net, part) for part in op.parts)


def _macs(net: Net, op: Op) -> int:
    if isinstance(op.attributes, TvmCode):
        return op.attributes.macs
    if op.kind == "transpose_conv2d":
        return net.tensor(op.inputs[0]).elements * prod(net.tensor(op.inputs[1]).shape[:3])
    return net.tensor(op.output).elements * _per_output(net, op)


def _per_output(net: Net, op: Op) -> int:
    if op.kind in ("conv2d", "dense", "sums"):
        return prod(net.tensor(op.inputs[1]).shape[1:])
    if op.kind == "depthwise_conv2d":
        return prod(net.tensor(op.inputs[1]).shape[1:3])
    return net.tensor(op.inputs[0]).shape[-1] if op.kind == "matmul" else 0


def total_macs(net: Net) -> int:
    return sum(macs(net, op) for op in net.ops)


def activation_bytes(net: Net, op: Op) -> int:
    """Bytes of activations that the op reads and writes."""
    names = (*net.activations(op), *op.outputs)
    return sum(net.tensor(name).bytes for name in names)


def constant_bytes(net: Net, op: Op) -> int:
    """Bytes of the op's constants as the model holds them."""
    return sum(net.tensor(name).bytes for name in op.inputs if name in net.constants)
