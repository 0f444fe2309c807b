"""The core as an engine: it takes every kind of op, with kernels the code generator makes.

This module says which constants a kernel gets and in which order its arguments stand;
`codegen/tir_ops` writes the kernels to match.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from npukit.accel.interface import (
    Accelerator,
    Address,
    Call,
    CommandFormat,
    ConstantArray,
    Cost,
    Lowered,
    Tile,
)
from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import AveragePool, Conv2d, Dense, DepthwiseConv2d, MaxPool, Softmax
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import output_channel_axis, quantization, requantization

CYCLES_PER_PRODUCT = 9
CYCLES_PER_OUTPUT = 40


class Cpu:
    """The core of a PE, of any board."""

    name = "cpu"
    commands: CommandFormat | None = None

    def refusal(self, net: Net, op: Op) -> str | None:
        return None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        constants = sum(aligned_bytes(array) for array in constants_of(net, op, output, ""))
        cycles = output.elements * (CYCLES_PER_OUTPUT + CYCLES_PER_PRODUCT * _products(net, op))
        return Cost(cycles, constants)

    def lower(self, tile: Tile) -> Lowered:
        constants = constants_of(tile.net, tile.op, tile.output.box, tile.name)
        addresses = (
            *(operand.address for operand in tile.inputs),
            *(Address(array.symbol) for array in constants),
            tile.output.address,
        )
        return Lowered(constants, Call(tile.name, addresses))

    def sources(self, board: Board) -> tuple[Path, ...]:
        return ()


def aligned_bytes(array: ConstantArray) -> int:
    """Bytes an array takes with the gap up to the next one."""
    return -(-array.values.nbytes // array.align) * array.align


def constants_of(net: Net, op: Op, output: Box, prefix: str) -> tuple[ConstantArray, ...]:
    """What the kernel for this box of the op's output needs, in the order of its arguments."""
    attributes = op.attributes
    if isinstance(attributes, Conv2d | DepthwiseConv2d | Dense):
        return _filter_constants(net, op, output, prefix)
    if isinstance(attributes, Softmax):
        table = exp_table(quantization(net, op.inputs[0]).scale, attributes.beta).astype(np.int32)
        return (_array(prefix, "exp", table, "exp(-d) in Q0.31 for d steps below the largest"),)
    return tuple(
        _array(prefix, "operand", net.constants[name], "the constant operand")
        for name in op.inputs
        if name in net.constants
    )


def _filter_constants(net: Net, op: Op, output: Box, prefix: str) -> tuple[ConstantArray, ...]:
    chosen = slice(output.start[-1], output.stop[-1])
    axis = output_channel_axis(op)
    weights = net.constants[op.inputs[1]]
    bias = net.constant(op, 2)
    factors = requantization(net, op)
    optional = () if bias is None else (_array(prefix, "bias", bias[chosen], "biases"),)
    return (
        _array(prefix, "weights", weights[(slice(None),) * axis + (chosen,)], f"weights {_LAYOUT[op.kind]}"),
        *optional,
        _array(prefix, "multipliers", factors.multipliers[chosen], "of the requantisation, in Q0.31"),
        _array(prefix, "shifts", factors.shifts[chosen].astype(np.int8), "of the requantisation, positive to the left"),
    )


_LAYOUT = {
    "conv2d": "[output channel][y][x][input channel]",
    "depthwise_conv2d": "[y][x][channel]",
    "dense": "[output][input]",
}


def _array(prefix: str, role: str, values: np.ndarray, comment: str) -> ConstantArray:
    align = max(4, values.dtype.itemsize)
    return ConstantArray(f"{prefix}_{role}", np.ascontiguousarray(values), align, comment)


def _products(net: Net, op: Op) -> int:
    """Products, or what takes as long, for one element of the output."""
    attributes = op.attributes
    if isinstance(attributes, Conv2d | Dense):
        return int(np.prod(net.tensor(op.inputs[1]).shape[1:]))
    if isinstance(attributes, DepthwiseConv2d):
        return int(np.prod(net.tensor(op.inputs[1]).shape[1:3]))
    if isinstance(attributes, AveragePool | MaxPool):
        return attributes.window[0] * attributes.window[1]
    return 0


_: type[Accelerator] = Cpu
