"""What an op costs, whoever runs it: multiply-accumulates and bytes."""

from __future__ import annotations

from math import prod

from npukit.net.net import Net, Op


def macs(net: Net, op: Op) -> int:
    """Multiply-accumulates as the model states them, padding included."""
    if op.kind not in ("conv2d", "depthwise_conv2d", "dense"):
        return 0
    weights = net.tensor(op.inputs[1]).shape
    per_output = prod(weights[1:3]) if op.kind == "depthwise_conv2d" else prod(weights[1:])
    return net.tensor(op.output).elements * per_output


def total_macs(net: Net) -> int:
    return sum(macs(net, op) for op in net.ops)


def activation_bytes(net: Net, op: Op) -> int:
    """Bytes of activations that the op reads and writes."""
    names = (*net.activations(op), *op.outputs)
    return sum(net.tensor(name).bytes for name in names)


def constant_bytes(net: Net, op: Op) -> int:
    """Bytes of the op's constants as the model holds them."""
    return sum(net.tensor(name).bytes for name in op.inputs if name in net.constants)
