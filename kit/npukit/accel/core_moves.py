"""Ops that move bytes, or map each through a table, on the core: routines for any box of their output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import Routine as Code
from npukit.accel.cortex_m.kernel import entry_cycles, routine
from npukit.accel.cortex_m.kernels.transpose import Axis, dense_strides, transposition
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, Routine, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Concat, Lookup, Slice, Transpose
from npukit.net.receptive import needs

_DIGEST_DIGITS = 8
_TABLE_BYTES = 256
LOOSE_BYTES = 96
"""Bytes that a routine for a box in a larger tensor is longer than one for a dense box: loops that do not merge."""

Strides = Sequence[int]
"""Bytes between neighbours along each axis."""


@dataclass(frozen=True)
class _Move:
    """The elements of an input that go to the output: the input's number, both places' bytes from the boxes' first."""

    number: int
    source: int
    target: int
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class Moves:
    """An op as copies of what lies apart; a `table` maps each byte on its way."""

    note: str
    item: int
    table: np.ndarray | None = None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        bodies = self._dense(net, op, output)
        cycles = sum(body.cycles + entry_cycles(constants=self.table is not None) for body in bodies)
        return Cost(cycles, 0 if self.table is None else _TABLE_BYTES, constants_key=self.note)

    def codes(self, net: Net, op: Op, output: Box) -> Iterator[Code]:
        """The routines for a box of the output, if what holds it holds nothing else."""
        return map(routine, self._dense(net, op, output))

    def lowered(self, tile: Tile) -> Lowered | None:
        """None where the boxes lie so in larger tensors that there are too many loops."""
        table = () if self.table is None else (ConstantArray(f"{tile.name}_table", self.table, 4, "by the byte read"),)
        held = [operand.strides for operand in tile.inputs]
        moves = _moves(tile.net, tile.op, tile.output.box, held, tile.output.strides)
        try:
            return Lowered(table, Routines(tuple(self._call(tile, move) for move in moves)))
        except _TooManyAxes:
            return None

    def _call(self, tile: Tile, move: _Move) -> RoutineCall:
        body = _body(move.axes, self.item, mapped=self.table is not None)
        source, target = tile.inputs[move.number].address, tile.output.address
        return RoutineCall(
            Routine(f"{self.note}_{routine(body).name[-_DIGEST_DIGITS:]}", body.text(), self.note),
            (
                Address(source.symbol, source.offset + move.source),
                Address(target.symbol, target.offset + move.target),
                0,
                0 if self.table is None else Address(f"{tile.name}_table"),
            ),
        )

    def _dense(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        held = [dense_strides(box.shape, self.item) for box in needs(net, op, output)]
        moves = _moves(net, op, output, held, dense_strides(output.shape, self.item))
        return [_body(move.axes, self.item, mapped=self.table is not None) for move in moves]


def moves_of(net: Net, op: Op) -> Moves | None:
    """The routines for an op that moves or maps bytes; None for others, and for more axes than there are registers."""
    item = np.dtype(net.tensor(op.output).dtype).itemsize
    if isinstance(op.attributes, Lookup):
        return Moves("lookup", 1, _by_byte(net, op))
    if not isinstance(op.attributes, Transpose | Slice | Concat) or any(name in net.constants for name in op.inputs):
        return None
    try:
        found = Moves(op.kind, item)
        found.cost(net, op, Box.whole(net.tensor(op.output).shape))
    except _TooManyAxes:
        return None
    return found


class _TooManyAxes(Exception):
    """No routine has a register for each of the loops."""


def _by_byte(net: Net, op: Op) -> np.ndarray:
    """The table in the order of the bytes that are read: of int8, those of what is not negative come first."""
    table = net.constants[op.inputs[1]]
    return np.roll(table, _TABLE_BYTES // 2) if net.tensor(op.inputs[0]).dtype == "int8" else table


def _body(axes: tuple[Axis, ...], item: int, *, mapped: bool) -> Assembly:
    body = transposition(axes, item, mapped=mapped)
    if body is None:
        raise _TooManyAxes
    return body


def _moves(net: Net, op: Op, output: Box, held: Sequence[Strides], made: Strides) -> Iterator[_Move]:
    """The copies that make a box of the output of the boxes that it needs, which lie with these strides."""
    shape, boxes = output.shape, needs(net, op, output)
    match op.attributes:
        case Transpose(axes=axes):
            yield _Move(0, 0, 0, _axes(shape, [held[0][axis] for axis in axes], made))
        case Slice(begin=begin, strides=steps):
            corners = zip(begin, output.start, steps, boxes[0].start, held[0], strict=True)
            offset = sum((first + start * step - box) * stride for first, start, step, box, stride in corners)
            yield _Move(0, offset, 0, _axes(shape, [a * b for a, b in zip(held[0], steps, strict=True)], made))
        case Concat(axis=axis):
            target = 0
            for number, (box, strides) in enumerate(zip(boxes, held, strict=True)):
                yield _Move(number, 0, target, _axes(box.shape, strides, made))
                target += box.shape[axis] * made[axis]
        case _:
            yield _Move(0, 0, 0, _axes(shape, held[0], made))


def _axes(shape: Sequence[int], sources: Strides, targets: Strides) -> tuple[Axis, ...]:
    return tuple(map(Axis, shape, sources, targets))
