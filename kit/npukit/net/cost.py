"""The cost of an op on any engine: multiply-accumulates and bytes."""

from __future__ import annotations

from npukit.net.net import Net, Op
from npukit.net.specs.table import SPECS


def macs(net: Net, op: Op) -> int:
    """Multiply-accumulates as the model states them, padding included."""
    return sum(SPECS[part.kind].products(net, part) for part in op.parts)


def total_macs(net: Net) -> int:
    return sum(macs(net, op) for op in net.ops)


def activation_bytes(net: Net, op: Op) -> int:
    """Bytes of activations that the op reads and writes."""
    names = (*net.activations(op), *op.outputs)
    return sum(net.tensor(name).bytes for name in names)


def constant_bytes(net: Net, op: Op) -> int:
    """Bytes of the op's constants as the model holds them."""
    return sum(net.tensor(name).bytes for name in op.inputs if name in net.constants)
