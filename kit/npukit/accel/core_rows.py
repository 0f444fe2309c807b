"""Ops over the rows of a tensor, its last axis, on the core: routines for any box of their output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import Routine as Code
from npukit.accel.cortex_m.kernel import entry_cycles, routine
from npukit.accel.cortex_m.kernels.norm import norm
from npukit.accel.cortex_m.kernels.rows import Strides
from npukit.accel.cortex_m.kernels.softmax import LONGEST, softmax
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, Operand, Routine, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Norm, Softmax
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import quantization

_DIGEST_DIGITS = 8


@dataclass(frozen=True, eq=False)
class Rows:
    """An op as a routine for so many rows of a length, and the constants that it reads."""

    note: str
    body: Callable[[int, int, Strides], Assembly]
    constants: np.ndarray

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        cycles = self._dense(output).cycles + entry_cycles(constants=True)
        return Cost(cycles, self.constants.nbytes, constants_key=self.note)

    def codes(self, net: Net, op: Op, output: Box) -> Iterator[Code]:
        """The routine for a box of the output, if what holds it holds nothing else."""
        yield routine(self._dense(output))

    def lowered(self, tile: Tile) -> Lowered:
        constants = ConstantArray(f"{tile.name}_constants", self.constants, 4, "of each row")
        (source,), target = tile.inputs, tile.output
        shape = target.box.shape
        outer = 0 if _runs_on(source) and _runs_on(target) else 2
        body = self.body(prod(shape[outer:-1]), shape[-1], (source.pixel_stride, target.pixel_stride))
        name = f"{self.note.replace(' ', '_')}_{routine(body).name[-_DIGEST_DIGITS:]}"
        code = Routine(name, f"    mov r12, r3\n{body.text()}", self.note)
        calls = (
            RoutineCall(code, (_at(source, place), _at(target, place), 0, Address(constants.symbol)))
            for place in product(*map(range, shape[:outer]))
        )
        return Lowered((constants,), Routines(tuple(calls)))

    def _dense(self, output: Box) -> Assembly:
        length = output.shape[-1]
        return self.body(output.elements // length, length, (length, length))


def rows_of(net: Net, op: Op) -> Rows | None:
    """The routine for an op over rows; None for others, and where numbers would leave 32 bits."""
    attributes, length = op.attributes, (1, *net.tensor(op.output).shape)[-1]
    if isinstance(attributes, Softmax) and length <= LONGEST:
        table = exp_table(quantization(net, op.inputs[0]).scale, attributes.beta)
        return Rows("softmax by table", softmax, table[::-1].astype(np.int32))
    if isinstance(attributes, Norm) and attributes.clamp == (-128, 127):
        zero = quantization(net, op.inputs[0]).zero_point
        pairs = np.stack([net.constants[name] for name in op.inputs[1:]], axis=-1)
        return Rows("norm", lambda rows, length, strides: norm(rows, length, strides, attributes, zero), pairs)
    return None


def _runs_on(operand: Operand) -> bool:
    """True if its rows lie all at the same distance."""
    shape, strides = operand.box.shape, operand.strides
    return all(shape[i] == 1 or strides[i] == shape[i + 1] * strides[i + 1] for i in range(len(shape) - 2))


def _at(operand: Operand, place: tuple[int, ...]) -> Address:
    """The first of its rows at a place of its outer axes."""
    offset = sum(position * stride for position, stride in zip(place, operand.strides, strict=False))
    return Address(operand.address.symbol, operand.address.offset + offset)
