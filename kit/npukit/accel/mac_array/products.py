"""Products of two activations: one command per pair of matrices, the second matrix in the place of the weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeVar

import numpy as np

from npukit.accel.interface import Address, ConstantArray, Field, Operand, Tile
from npukit.accel.mac_array.cycles import Figures, Flags, Patch
from npukit.accel.mac_array.packing import pack_parameters, parameter_bytes
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Matmul
from npukit.net.ops.dense import operand_axes
from npukit.net.requantize import matmul_rescaling
from npukit.net.tensor import transposed, untransposed

Fields = tuple[tuple[str, Field], ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Products:
    """A box of the output as products of matrices, [rows, depth] times [depth, columns].

    `along_pixels`: each row of the second input holds the `depth` factors of one column, like a block of weights along
    pixels. `turned`: a single row times such a matrix. The array then streams the matrix as pixels, sixteen rows side
    by side, and holds the single row, instead of holding four rows of the matrix at a time.
    """

    leading: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    along_pixels: bool
    figures: Figures
    turned: bool = False

    @classmethod
    def of(cls, net: Net, op: Op, output: Box, figures: Figures) -> Products:
        attributes = op.of(Matmul)
        *leading, rows, columns = untransposed(output.shape, attributes.result)
        depth = net.tensor(op.inputs[0]).shape[-1]
        along_pixels = attributes.second != () and attributes.second[-1] != len(attributes.second) - 1
        turned = along_pixels and rows == 1
        rows, columns = (columns, rows) if turned else (rows, columns)
        return cls(tuple(leading), rows, columns, depth, along_pixels, figures, turned)

    @property
    def count(self) -> int:
        return prod(self.leading)

    @property
    def block(self) -> int:
        return self.figures.lanes if self.along_pixels else self.figures.width

    def in_turn(self, first: T, second: T) -> tuple[T, T]:
        """Values for the two operands, in the order in which the array takes the operands."""
        return (second, first) if self.turned else (first, second)

    @property
    def cycles(self) -> int:
        figures, patch = self.figures, Patch(1, self.depth)
        flags = Flags(second=True)
        each = figures.convolution(self.rows, self.columns, patch, along_pixels=self.along_pixels, flags=flags)
        return self.count * each - (self.count - 1) * (figures.setup_cycles - figures.chain_cycles)

    @property
    def parameter_bytes(self) -> int:
        return parameter_bytes(self.columns, self.block, self.figures.parameter_bytes_per_channel)

    def parameters(self, tile: Tile) -> ConstantArray:
        factor = matmul_rescaling(tile.net, tile.op)
        ones = np.ones(self.columns, np.int64)
        packed = pack_parameters(0 * ones, factor.multiplier * ones, factor.shift * ones, self.block)
        return ConstantArray(f"{tile.name}_parameters", packed, 4, "biases, multipliers, shifts")

    def commands(self, tile: Tile) -> Iterator[Fields]:
        """The addresses, sizes and strides in each command."""
        orders, leading = (*operand_axes(tile.op), ()), len(self.leading)
        operands = (_Matrices.of(operand, axes, leading) for operand, axes in zip(tile.inputs, orders, strict=False))
        first, second = self.in_turn(*operands)
        result = tile.op.of(Matmul).result
        made = _Matrices.of(tile.output, untransposed(range(len(result)), result), leading)
        for position in product(*map(range, self.leading)):
            yield (
                ("input", first.at(position)),
                ("input_height", 1),
                ("input_width", self.rows),
                ("input_pixel_stride", first.strides[self.turned]),
                ("input_channels", self.depth),
                ("weights", second.at(position)),
                ("second_row_stride", second.strides[self.along_pixels and not self.turned]),
                ("output", made.at(position)),
                ("output_height", 1),
                ("output_width", self.rows),
                ("output_pixel_stride", made.strides[self.turned]),
                ("output_channels", self.columns),
            )


@dataclass(frozen=True)
class _Matrices:
    """The matrices in an operand: address of the first, bytes between them along each leading axis, strides inside."""

    address: Address
    leading: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, operand: Operand, axes: tuple[int, ...], leading: int) -> _Matrices:
        shape, strides = transposed(operand.box.shape, axes), transposed(operand.strides, axes)
        apart = [0 if size == 1 else stride for size, stride in zip(shape[:-2], strides[:-2], strict=True)]
        return cls(operand.address, (0,) * (leading - len(apart)) + tuple(apart), strides[-2:])

    def at(self, position: tuple[int, ...]) -> Address:
        offset = sum(place * stride for place, stride in zip(position, self.leading, strict=True))
        return Address(self.address.symbol, self.address.offset + offset)
