"""Boxes of tensors as operands in the buffers of a plan."""

from __future__ import annotations

from math import prod

import numpy as np

from npukit.accel.interface import Address, Operand
from npukit.net.box import Box
from npukit.net.tensor import Tensor
from npukit.plan.ir.plan import Buffer
from npukit.plan.tensors.dma_copies import offset


def operand_in(buffer: Buffer, tensor: Tensor, box: Box, symbol: str) -> Operand:
    """A box of the tensor in a buffer whose address is a symbol."""
    item, shape = np.dtype(tensor.dtype).itemsize, buffer.box.shape
    address, pixel = Address(symbol, offset(box, buffer.box, item)), (shape[-1] if shape else 1) * item
    row = pixel * (shape[2] if len(shape) == 4 else prod(shape[:-1]))
    return Operand(tensor, box, address, row, pixel, shape[1] * row if len(shape) == 4 else 0)
