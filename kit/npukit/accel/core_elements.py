"""Elementwise products and choices on the core: routines for any box of their output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.code.requantize import LARGEST_EXPONENT
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels import choice as choices
from npukit.accel.cortex_m.kernels.product import MOST_AXES, of_tables, product
from npukit.accel.cortex_m.kernels.rows import Around
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.interface import Address, ConstantArray, Cost, Field, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Divide, Maximum, Minimum, Multiply, Select, SquaredDifference
from npukit.net.ops.pairs import square_rescaling, tables_of
from npukit.net.receptive import needs
from npukit.net.requantize import Multiplier, product_rescaling, quantization

Strides = tuple[int, ...]
"""The stride in bytes along each axis."""


@dataclass(frozen=True, eq=False)
class ElementsOfTwo(BoxRoutine):
    """An elementwise function of two activations as routines. `line`: the routine for lines of a length, with the loops
    around. `constants`: of the op."""

    note: str
    line: Callable[[int, tuple[Around, ...]], Assembly]
    constants: np.ndarray

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        body = self.of_dense(net, op, output)
        assert body is not None, "a box of it takes no more loops than the whole"
        return [body]

    def constants_of(self, output: Box) -> np.ndarray:
        return self.constants

    def lowered(self, tile: Tile) -> Lowered | None:
        held = [(operand.box.shape, operand.strides) for operand in tile.inputs]
        body = self._body(tile.output.box.shape, held, tile.output.strides)
        if body is None:
            return None
        constants = ConstantArray(f"{tile.name}_constants", self.constants, 4, f"of the {self.note}")
        code = function(self.note, body, constants=True)
        first, second = (operand.address for operand in tile.inputs)
        call = RoutineCall(code, (first, second, tile.output.address, Address(constants.symbol)))
        return Lowered((constants,), Routines((call,)))

    def of_dense(self, net: Net, op: Op, output: Box) -> Assembly | None:
        """The routine for a box of the output with dense operands and output; None if it needs too many loops."""
        held = [(box.shape, dense_strides(box.shape, 1)) for box in needs(net, op, output)]
        return self._body(output.shape, held, dense_strides(output.shape, 1))

    def _body(self, shape: Strides, held: Sequence[tuple[Strides, Strides]], made: Strides) -> Assembly | None:
        *around, line = _merged(shape, [*(_broadcast(*each, shape) for each in held), made])
        return self.line(line.size, tuple(around)) if len(around) <= MOST_AXES else None


def products_of(net: Net, op: Op) -> ElementsOfTwo | None:
    """The routines for a function of two activations; None for other ops, for a right shift outside the range of a
    saturating shift, and if the numbers of a line are not contiguous."""
    if not isinstance(op.attributes, Multiply | Divide | SquaredDifference) or op.attributes.clamp != (-128, 127):
        return None
    if any(name in net.constants or net.tensor(name).dtype != "int8" for name in op.inputs):
        return None
    found = (_product if isinstance(op.attributes, Multiply) else _of_tables)(net, op)
    whole = found and found.of_dense(net, op, Box.whole(net.tensor(op.output).shape))
    return found if whole and _keeps_lines(net, op) else None


def _product(net: Net, op: Op) -> ElementsOfTwo | None:
    factor = product_rescaling(net, op)
    first, second, made = (quantization(net, name).zero_point for name in (*op.inputs, op.output))
    if not 0 <= -factor.shift <= LARGEST_EXPONENT:
        return None
    line = partial(product, second_zero=second, shift=-factor.shift)
    return ElementsOfTwo("product", line, np.array([2 * first, *_scaling(factor, made)], np.int32))


def _scaling(factor: Multiplier, zero: int) -> tuple[int, int]:
    """The multiplier and the addend: the zero point and half a step of the right shift."""
    return factor.multiplier, (zero << -factor.shift) + (1 << -factor.shift >> 1)


def _of_tables(net: Net, op: Op) -> ElementsOfTwo | None:
    squared = isinstance(op.attributes, SquaredDifference)
    factor = square_rescaling(net, op) if squared else Multiplier(0, 0)
    if -factor.shift > LARGEST_EXPONENT:
        return None
    line = partial(of_tables, shift=-factor.shift, squared=squared)
    scaling = np.array(_scaling(factor, quantization(net, op.output).zero_point), np.int32)
    note = "squared difference" if squared else "quotient"
    tables = (each << 16 | each & 0xFFFF if squared else each for each in tables_of(net, op))
    return ElementsOfTwo(note, line, np.concatenate([*tables, scaling]))


def _keeps_lines(net: Net, op: Op) -> bool:
    """True if a box of any size has contiguous lines and no more loops: no operand broadcasts along the last axis."""
    sizes = {(1, *net.tensor(name).shape)[-1] for name in (*op.inputs, op.output)}
    return len(sizes) == 1 and len(net.tensor(op.output).shape) <= MOST_AXES + 1


def _broadcast(held: Strides, strides: Strides, shape: Strides) -> Strides:
    """The stride in bytes along each axis of the output, 0 along an axis that broadcasts."""
    missing = len(shape) - len(held)
    return (*(0,) * missing, *(0 if size == 1 else stride for size, stride in zip(held, strides, strict=True)))


def _merged(shape: Strides, strides: Sequence[Strides]) -> list[Around]:
    """The axes of more than one element, from the outermost to a line of contiguous elements. Axes that are contiguous
    in all tensors are merged."""
    found: list[Around] = []
    for size, *steps in zip(shape, *strides, strict=True):
        if found and found[-1].strides == tuple(size * step for step in steps):
            found[-1] = Around(size * found[-1].size, tuple(steps))
        elif size > 1:
            found.append(Around(size, tuple(steps)))
    line = (1,) * len(strides)
    return found if found and found[-1].strides == line else [*found, Around(1, line)]


# ---- choices ----


@dataclass(frozen=True, eq=False)
class ChoiceRoutine(BoxRoutine):
    """A minimum, a maximum or a selection as routines. `held`: by the number of an operand its constant, which has all
    numbers of a line."""

    note: str
    held: Mapping[int, np.ndarray]

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        body = self._body(net, op, output, [dense_strides(box.shape, 1) for box in needs(net, op, output)])
        assert body is not None, "a box of it takes no more loops than the whole"
        return [body]

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        cycles = self.bodies(net, op, output)[0].cycles + entry_cycles(constants=False)
        return Cost(cycles, sum(part.nbytes for part in self._parts(output).values()), constants_key=self.note)

    def lowered(self, tile: Tile) -> Lowered | None:
        strides = [operand.strides for operand in tile.inputs]
        body = self._body(tile.net, tile.op, tile.output.box, strides, tile.output.strides)
        if body is None:
            return None
        symbols = {number: f"{tile.name}_operand_{number}" for number in self.held}
        constants = (
            ConstantArray(symbols[number], part, 4, "a constant operand")
            for number, part in self._parts(tile.output.box).items()
        )
        given = iter(tile.inputs)
        places: list[Field] = [
            Address(symbols[number]) if number in symbols else next(given).address
            for number in range(len(tile.op.inputs))
        ]
        code = function(self.note, body, constants=False)
        call = RoutineCall(code, ((*places, tile.output.address, 0))[:4])
        return Lowered(tuple(constants), Routines((call,)))

    def _parts(self, output: Box) -> Mapping[int, np.ndarray]:
        """The parts of the constants for a box."""
        parts = dict[int, np.ndarray]()
        for number, value in self.held.items():
            spans = zip(value.shape, output.start, output.stop, strict=True)
            parts[number] = np.ascontiguousarray(value[tuple(slice(*(s if n > 1 else (0, 1))) for n, *s in spans)])
        return parts

    def _body(
        self, net: Net, op: Op, output: Box, given: Sequence[Strides], made: Strides | None = None
    ) -> Assembly | None:
        boxes, strides, parts = iter(needs(net, op, output)), iter(given), self._parts(output)
        held = [
            (parts[number].shape, dense_strides(parts[number].shape, 1))
            if number in parts
            else (next(boxes).shape, next(strides))
            for number in range(len(op.inputs))
        ]
        every = [_broadcast(*each, output.shape) for each in held]
        of_line = self.note == Select.kind and every[0][-1:] != (1,)
        every = [(*each[:-1], 1) if each is every[0] else each for each in every]
        *around, line = _merged(output.shape, [*every, made or dense_strides(output.shape, 1)])
        if len(around) > choices.MOST_AXES:
            return None
        return choices.choice(line.size, tuple(around), self.note, of_line=of_line)


def choices_of(net: Net, op: Op) -> ChoiceRoutine | None:
    """The routines for a minimum, a maximum or a selection of bytes; None for other ops, and if the numbers of a line
    are not contiguous."""
    if not isinstance(op.attributes, Minimum | Maximum | Select) or net.tensor(op.output).dtype != "int8":
        return None
    *leading, channels = net.tensor(op.output).shape or (1,)
    conditions = int(isinstance(op.attributes, Select))
    values, rank = op.inputs[conditions:], len(leading) + 1
    lines = all(net.tensor(name).shape[-1:] == (channels,) for name in values if name not in net.constants)
    if (op.inputs[0] in net.constants and conditions) or sum(size > 1 for size in leading) > choices.MOST_AXES:
        return None
    held = {number: net.constants[name] for number, name in enumerate(op.inputs) if name in net.constants}
    return ChoiceRoutine(op.kind, {n: _in_lines(each, rank, channels) for n, each in held.items()}) if lines else None


def _in_lines(value: np.ndarray, rank: int, channels: int) -> np.ndarray:
    """A constant with all axes, and with all numbers of a line."""
    padded = value.reshape((1,) * (rank - value.ndim) + value.shape)
    return np.broadcast_to(padded, (*padded.shape[:-1], channels))
