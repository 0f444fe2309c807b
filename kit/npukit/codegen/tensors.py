"""The tables by which the rest of the firmware knows the network: inputs, outputs, layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from npukit.accel.interface import Operand, Tile
from npukit.codegen.names import c_string
from npukit.codegen.program import Program
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.plan.plan import View


@dataclass(frozen=True)
class TensorRow:
    """`struct net_tensor`."""

    name: str
    address: str
    row_bytes: int
    rows: int
    stride: int


def input_rows(net: Net, program: Program) -> list[TensorRow]:
    return [_whole_tensor(net, program, name) for name in net.inputs]


def output_rows(net: Net, program: Program) -> list[TensorRow]:
    return [_whole_tensor(net, program, name) for name in net.outputs]


def layer_rows(net: Net, program: Program) -> list[TensorRow]:
    """What each layer leaves behind, in the order of the layers."""
    return [_row(_whole_of(net, program, part.tile)) for part in program.layers]


def _whole_of(net: Net, program: Program, tile: Tile) -> Operand:
    """All of the tensor a tile is part of, where the tile lies."""
    buffer = next(b for b in program.arena.buffers.values() if program.arena.place(b) == tile.output.address.symbol)
    return program.arena.operand(View(buffer.name, Box.whole(net.tensor(tile.op.output).shape)))


def _whole_tensor(net: Net, program: Program, name: str) -> TensorRow:
    whole = Box.whole(net.tensor(name).shape)
    for buffer in program.arena.buffers.values():
        if buffer.tensor == name and buffer.box == whole:
            return _row(program.arena.operand(View(buffer.name, whole)))
    raise NpukitError(f"the plan has no buffer for the whole of {name} on the PE with the host link")


def _row(operand: Operand) -> TensorRow:
    runs = list(_runs(operand))
    row_bytes, rows, stride = runs[0], 1, runs[0]
    if len(runs) > 1:
        row_bytes, rows, stride = _strided(operand)
    place = operand.address
    offset = f" + {place.offset}" if place.offset else ""
    return TensorRow(
        c_string(operand.tensor.name), f"&net_activations[{place.symbol}{offset}]", row_bytes, rows, stride
    )


def _runs(operand: Operand) -> Iterator[int]:
    """Bytes of the contiguous pieces, or one if all is contiguous."""
    item, shape = np.dtype(operand.tensor.dtype).itemsize, operand.box.shape
    height, width, channels = _plane(shape)
    dense = channels * item == operand.pixel_stride or width * height == 1
    if dense and (height == 1 or width * operand.pixel_stride == operand.row_stride):
        yield height * width * channels * item
        return
    yield from [width * channels * item] * height if dense else [channels * item] * (height * width)


def _strided(operand: Operand) -> tuple[int, int, int]:
    """Bytes of a row, number of rows, bytes between rows."""
    item = np.dtype(operand.tensor.dtype).itemsize
    height, width, channels = _plane(operand.box.shape)
    if channels * item == operand.pixel_stride or width == 1:
        return width * channels * item, height, operand.row_stride
    if height == 1 or width * operand.pixel_stride == operand.row_stride:
        return channels * item, height * width, operand.pixel_stride
    raise NpukitError(f"{operand.tensor.name}: {operand.box} is neither rows nor channels of its buffer")


def _plane(shape: tuple[int, ...]) -> tuple[int, int, int]:
    if len(shape) == 4:
        return shape[0] * shape[1], shape[2], shape[3]
    return 1, prod(shape[:-1]), shape[-1] if shape else 1
