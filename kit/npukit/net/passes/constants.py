"""Constant folding."""

from __future__ import annotations

from dataclasses import replace

from npukit.net.net import Net, Op
from npukit.net.reference import run_reference


def fold_constants(net: Net) -> Net:
    """The net with ops on constants alone replaced by their results. Outputs of the net stay computed."""
    kept: list[Op] = []
    for op in net.ops:
        if all(name in net.constants for name in op.inputs) and op.output not in net.ends:
            first, others = op.inputs[0], {name: net.constants[name] for name in op.inputs[1:] if name != op.inputs[0]}
            alone = replace(net.alone(op), inputs=(first,), constants=others)
            net = replace(net, constants={**net.constants, op.output: run_reference(alone, [net.constants[first]])[0]})
        else:
            kept.append(op)
    return net.with_ops(tuple(kept))
