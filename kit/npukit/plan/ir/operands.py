"""Boxes of tensors as operands in the buffers of a plan."""

from __future__ import annotations

from math import prod

import numpy as np

from npukit.accel.interface import Address, Operand
from npukit.net.box import Box
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Buffer


def operand_in(buffer: Buffer, tensor: Tensor, box: Box, symbol: str) -> Operand:
    """A box of the tensor in a buffer whose address is a symbol."""
    item = np.dtype(tensor.dtype).itemsize
    strides = _strides(buffer.box.shape, item)
    begin = sum(map(int.__mul__, box.offset_in(buffer.box), strides))
    return Operand(tensor, box, Address(symbol, begin), *_row_and_pixel(buffer.box.shape, item))


def _strides(shape: tuple[int, ...], item: int) -> list[int]:
    """Bytes between neighbours along each axis."""
    return [item * prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _row_and_pixel(shape: tuple[int, ...], item: int) -> tuple[int, int]:
    if len(shape) == 4:
        return shape[2] * shape[3] * item, shape[3] * item
    pixel = (shape[-1] if shape else 1) * item
    return pixel * prod(shape[:-1]), pixel
