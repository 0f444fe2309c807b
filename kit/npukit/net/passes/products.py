"""Transpositions around products of two activations, merged into the products, which support any axis order."""

from __future__ import annotations

from dataclasses import replace

from npukit.net.net import Net, Op
from npukit.net.ops import Matmul, Transpose
from npukit.net.passes.simplify import without_unread
from npukit.net.tensor import transposed


def with_transposing_products(net: Net) -> Net:
    """The net without the transpositions that a product of two activations can perform."""
    made = {op.output: op for op in net.ops if isinstance(op.attributes, Transpose)}
    net = without_unread(net.with_ops(tuple(_reading(op, made) for op in net.ops)))
    for op in net.ops:
        behind = [each for each in net.ops if op.output in each.inputs]
        if isinstance(op.attributes, Matmul) and len(behind) == 1 and op.output not in net.ends:
            net = _writing(net, op, behind[0])
    return net


def _reading(op: Op, made: dict[str, Op]) -> Op:
    """The product on its operands before their transposition."""
    if not isinstance(op.attributes, Matmul):
        return op
    inputs, orders = list(op.inputs), [op.attributes.first, op.attributes.second]
    for place, ends in enumerate(((-1,), (-1, -2))):
        before = made.get(inputs[place])
        axes = _after(before, orders[place])
        if before and axes and axes.index(len(axes) - 1) - len(axes) in ends:
            inputs[place], orders[place] = before.inputs[0], axes
    return replace(op, inputs=tuple(inputs), attributes=replace(op.attributes, first=orders[0], second=orders[1]))


def _after(before: Op | None, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of two consecutive transpositions combined."""
    if before is None or not isinstance(before.attributes, Transpose):
        return ()
    return transposed(before.attributes.axes, axes)


def _writing(net: Net, op: Op, behind: Op) -> Net:
    """The net with a product merged with a transposition, its only reader."""
    if not isinstance(behind.attributes, Transpose) or behind.attributes.axes[-1] != len(behind.attributes.axes) - 1:
        return net
    axes = behind.attributes.axes
    result = transposed(op.of(Matmul).result or tuple(range(len(axes))), axes)
    product = replace(op, attributes=replace(op.attributes, result=result), outputs=behind.outputs)
    ops = tuple(product if each is op else each for each in net.ops if each is not behind)
    return without_unread(net.with_ops(ops))
