"""Compiles an op of the net to a program: TensorFlow Lite's fixed-point arithmetic in the unit's instructions."""

from __future__ import annotations

from collections.abc import Iterator

from npukit.net.net import Net, Op
from npukit.net.ops import Add, Maximum, Minimum, Multiply, Requantize, Subtract
from npukit.net.requantize import (
    ADD_LEFT_SHIFT,
    AddRescaling,
    Multiplier,
    add_rescaling,
    product_rescaling,
    quantization,
    scale_ratio,
    subtract_rescaling,
)

from .instructions import Instruction

KINDS = (Add, Subtract, Multiply, Maximum, Minimum, Requantize)
FIRST, SECOND, OUTPUT = 0, 1, 2
"""Pointers, and registers of the operands."""


def program(net: Net, op: Op) -> list[Instruction]:
    """The program for 16 elements."""
    return [*_loads(net, op), *_body(net, op), *_finish(net, op), Instruction("store", FIRST, OUTPUT)]


def _loads(net: Net, op: Op) -> Iterator[Instruction]:
    """Loads the operands. Subtracts zero points, except for maximum and minimum."""
    for index, name in enumerate(op.inputs):
        yield Instruction("load", index, index)
        if not isinstance(op.attributes, Maximum | Minimum):
            yield Instruction("addi", index, index, immediate=-quantization(net, name).zero_point)


def _body(net: Net, op: Op) -> Iterator[Instruction]:
    match op.attributes:
        case Add():
            yield from _sum("add", add_rescaling(net, op))
        case Subtract():
            yield from _sum("sub", subtract_rescaling(net, op))
        case Multiply():
            yield Instruction("mul", FIRST, FIRST, SECOND)
            yield from _rescale(FIRST, product_rescaling(net, op))
        case Maximum():
            yield Instruction("max", FIRST, FIRST, SECOND)
        case Minimum():
            yield Instruction("min", FIRST, FIRST, SECOND)
        case Requantize():
            yield from _rescale(FIRST, scale_ratio(net, op))


def _sum(operation: str, factors: AddRescaling) -> Iterator[Instruction]:
    for register, factor in ((FIRST, factors.first), (SECOND, factors.second)):
        yield Instruction("shl", register, register, immediate=ADD_LEFT_SHIFT)
        yield from _rescale(register, factor)
    yield Instruction(operation, FIRST, FIRST, SECOND)
    yield from _rescale(FIRST, factors.output)


def _rescale(register: int, factor: Multiplier) -> Iterator[Instruction]:
    if factor.shift > 0:
        yield Instruction("shl", register, register, immediate=factor.shift)
    yield Instruction("mulh", register, register, immediate=factor.multiplier)
    if factor.shift < 0:
        yield Instruction("rshr", register, register, immediate=-factor.shift)


def _finish(net: Net, op: Op) -> Iterator[Instruction]:
    """Adds the output's zero point and clamps."""
    if isinstance(op.attributes, Maximum | Minimum):
        return
    yield Instruction("addi", FIRST, FIRST, immediate=quantization(net, op.output).zero_point)
    low, high = getattr(op.attributes, "clamp", (-128, 127))
    yield Instruction("maxi", FIRST, FIRST, immediate=low)
    yield Instruction("mini", FIRST, FIRST, immediate=high)
