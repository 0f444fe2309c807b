"""The cost of an op on any engine, in multiply-accumulates."""

from __future__ import annotations

from npukit.net.net import Net, Op
from npukit.net.ops.table import SPECS


def macs(net: Net, op: Op) -> int:
    """Multiply-accumulates of the op as modelled, padding included."""
    return sum(SPECS[part.kind].products(net, part) for part in op.parts)


def total_macs(net: Net) -> int:
    return sum(macs(net, op) for op in net.ops)
