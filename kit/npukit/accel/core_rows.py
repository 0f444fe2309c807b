"""Ops over the rows of a tensor (its last axis) on the core: routines for any box of the output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels.norm import norm, norm_by_squares, numbers_of_norm, squares, zeros_of_squares
from npukit.accel.cortex_m.kernels.rows import RowPart, Strides
from npukit.accel.cortex_m.kernels.softmax import LONGEST_SOFTMAX, softmax, softmax_tables, takes_even_reciprocals
from npukit.accel.cortex_m.kernels.total import MOST_PARTS, numbers_of_total, total
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, Operand, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Norm, NormBySquares, Softmax, Squares, Total
from npukit.net.ops.softmax import exp_table
from npukit.net.requantize import quantization

ROW_CONSTANTS = "constants per row"
"""The comment above the constants in generated C. Proofs about mutants find tables by it."""


@dataclass(frozen=True, eq=False)
class RowsRoutine(BoxRoutine):
    """An op as a routine over rows, or over the same part of each row, with its constants. `of_op`: constants of the
    op. `constants`: a function of a start and a stop, for the numbers of a row between them."""

    note: str
    length: int
    body: Callable[[int, RowPart, Strides], Assembly]
    constants: Callable[[int, int], np.ndarray]
    of_op: Sequence[int] = ()

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        count = (1, *output.shape)[-1]
        return [self.body(output.elements // count, RowPart(self.length, count), (self.length, count))]

    def lowered(self, tile: Tile) -> Lowered:
        constants = ConstantArray(f"{tile.name}_constants", self.constants_of(tile.output.box), 4, ROW_CONSTANTS)
        (source,), target = tile.inputs, tile.output
        shape = target.box.shape
        outer = 0 if _runs_on(source) and _runs_on(target) else 2
        strides = source.pixel_stride, target.pixel_stride
        body = self.body(prod(shape[outer:-1]), RowPart(self.length, shape[-1]), strides)
        code = function(self.note, body, constants=True)
        calls = (
            RoutineCall(code, (_at(source, place), _at(target, place), 0, Address(constants.symbol)))
            for place in product(*map(range, shape[:outer]))
        )
        return Lowered((constants,), Routines(tuple(calls)))

    def constants_of(self, output: Box) -> np.ndarray:
        """The constants of the op, for parts of rows the index of the first number, then the constants of numbers."""
        start, stop = (*output.start[-1:], *output.stop[-1:]) or (0, 1)
        first = () if stop - start == self.length else (start,)
        return np.concatenate([np.array([*self.of_op, *first], np.int32), self.constants(start, stop)])


@dataclass(frozen=True, eq=False)
class ElementsRoutine(BoxRoutine):
    """The squares of pieces of a row, or a norm by such squares: a routine for a number of elements, with its
    constants.

    `constants`: a function of a start and a stop, for the elements between them. `of_op`: constants of the op.
    """

    note: str
    body: Callable[[int], Assembly]
    constants: Callable[[int, int], np.ndarray]
    of_op: Sequence[int]

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        return [self.body(output.elements)]

    def lowered(self, tile: Tile) -> Lowered:
        values = self.constants_of(tile.output.box)
        constants = ConstantArray(f"{tile.name}_constants", values, 4, "constants per element")
        code = function(self.note, self.body(tile.output.box.elements), constants=True)
        source, *squared = (operand.address for operand in tile.inputs)
        arguments = source, tile.output.address, squared[0] if squared else 0, Address(constants.symbol)
        return Lowered((constants,), Routines((RoutineCall(code, arguments),)))

    def constants_of(self, output: Box) -> np.ndarray:
        return np.concatenate([np.array(self.of_op, np.int32), self.constants(output.start[-1], output.stop[-1])])


@dataclass(frozen=True, eq=False)
class TotalRoutine(BoxRoutine):
    """The addition and requantisation of a one-pixel layer's partial sums: a routine, with each result's constants."""

    parts: int
    constants: np.ndarray
    note: str = "total"

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        return [total(output.elements, self.parts)]

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        cycles = total(output.elements, self.parts).cycles + entry_cycles(constants=False)
        return Cost(cycles, self.constants_of(output).nbytes, constants_key=self.note)

    def lowered(self, tile: Tile) -> Lowered:
        held = ConstantArray(f"{tile.name}_constants", self.constants_of(tile.output.box), 4, "constants per result")
        arguments = (*(operand.address for operand in tile.inputs), tile.output.address, Address(held.symbol))
        body = total(tile.output.box.elements, self.parts)
        code = function(self.note, body, constants=False, pointers=len(arguments))
        return Lowered((held,), Routines((RoutineCall(code, arguments + (0,) * (4 - len(arguments))),)))

    def constants_of(self, output: Box) -> np.ndarray:
        return self.constants[output.start[-1] : output.stop[-1]]


def total_of(net: Net, op: Op) -> TotalRoutine | None:
    """The routine for a total of one pixel; None for other ops, too many parts, or right shifts out of range."""
    shape, parts = net.tensor(op.output).shape, len(op.inputs) - 3
    if not isinstance(op.attributes, Total) or op.attributes.clamp != (-128, 127) or prod(shape[:-1]) > 1:
        return None
    bias, multipliers, shifts = (net.constants[name] for name in op.inputs[-3:])
    if not 2 <= parts <= MOST_PARTS or shifts.max() > -1 or shifts.min() < -LARGEST_EXPONENT:
        return None
    zero = quantization(net, op.output).zero_point
    return TotalRoutine(parts, numbers_of_total(bias, multipliers, shifts, zero))


def parts_of(net: Net, op: Op) -> ElementsRoutine | None:
    """The routine for an op on parts of a single row; None for other ops."""
    attributes, shape = op.attributes, net.tensor(op.inputs[0]).shape
    if not isinstance(attributes, Squares | NormBySquares) or prod(shape[:-1]) > 1:
        return None
    zero = quantization(net, op.inputs[0]).zero_point
    if isinstance(attributes, Squares):
        summed = partial(squares, piece=attributes.piece)
        return ElementsRoutine("squares", summed, lambda start, stop: np.zeros(0, np.int32), zeros_of_squares(zero))
    if attributes.clamp != (-128, 127):
        return None
    pairs = np.stack([net.constants[name] for name in op.inputs[2:]], axis=-1)
    pieces = net.tensor(op.inputs[1]).elements
    body = partial(norm_by_squares, length=shape[-1], pieces=pieces, shift=attributes.shift)
    held = numbers_of_norm(attributes, shape[-1], zero)
    return ElementsRoutine("norm by squares", body, lambda start, stop: pairs[start:stop].ravel(), held)


def rows_of(net: Net, op: Op) -> RowsRoutine | None:
    """The routine for an op over rows; None for other ops, and if numbers would exceed 32 bits."""
    attributes, length = op.attributes, (1, *net.tensor(op.output).shape)[-1]
    if isinstance(attributes, Softmax) and length <= LONGEST_SOFTMAX:
        exponentials = exp_table(quantization(net, op.inputs[0]).scale, attributes.beta)
        table = softmax_tables(exponentials, length)
        found = RowsRoutine("softmax by table", length, softmax, lambda start, stop: table)
        return found if takes_even_reciprocals(exponentials) else None
    if isinstance(attributes, Norm) and attributes.run:
        return _norm_by_runs(net, op)
    if isinstance(attributes, Norm) and attributes.clamp == (-128, 127):
        zero = quantization(net, op.inputs[0]).zero_point
        pairs = np.stack([net.constants[name] for name in op.inputs[1:]], axis=-1)
        body = partial(norm, centred=attributes.centred, shift=attributes.shift)
        held = numbers_of_norm(attributes, length, zero)
        return RowsRoutine("norm", length, body, lambda start, stop: pairs[start:stop].ravel(), held)
    return None


@dataclass(frozen=True, eq=False)
class NormByRuns(RowsRoutine):
    """A norm of whole rows with constants of their own."""

    def constants_of(self, output: Box) -> np.ndarray:
        return self.constants(output.start[-2], output.stop[-2])


def _norm_by_runs(net: Net, op: Op) -> NormByRuns | None:
    """The routine for a norm with constants of each row; None for several images, and for limits of their own."""
    attributes, shape = op.of(Norm), net.tensor(op.output).shape
    if attributes.clamp != (-128, 127) or prod(shape[:-2]) > 1:
        return None
    held = numbers_of_norm(attributes, shape[-1], quantization(net, op.inputs[0]).zero_point)
    pairs = np.stack([net.constants[name] for name in op.inputs[1:]], axis=-1).reshape(shape[-2], -1)
    rows = np.concatenate([np.tile(np.array(held, np.int32), (len(pairs), 1)), pairs], axis=1)
    body = partial(norm, centred=attributes.centred, shift=attributes.shift, run=attributes.run)
    return NormByRuns("norm by runs", shape[-1], body, lambda start, stop: rows[start:stop].ravel())


def _runs_on(operand: Operand) -> bool:
    """True if all rows are equally far apart."""
    apart = operand.pixel_stride
    for size, stride in zip(operand.box.shape[-2::-1], operand.strides[-2::-1], strict=True):
        if size > 1 and stride != apart:
            return False
        apart *= size
    return True


def _at(operand: Operand, place: tuple[int, ...]) -> Address:
    """The address of the first row at a position of the outer axes."""
    offset = sum(position * stride for position, stride in zip(place, operand.strides, strict=False))
    return Address(operand.address.symbol, operand.address.offset + offset)
