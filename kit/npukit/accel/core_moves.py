"""Ops that move bytes, or map each byte through a table, on the core: routines for any box of the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels.transpose import Axis, Copying, dense_strides, transposition
from npukit.accel.interface import Address, ConstantArray, Cost, Lowered, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Concat, Lookup, Pad, ResizeNearest, Slice, Transpose
from npukit.net.receptive import needs

_TABLE_BYTES = 256
_WORD = 4
_MOST_MOVES = 16
"""Limit of routines per op. More routines take more code than they save."""

Strides = Sequence[int]
"""The stride in bytes along each axis."""


@dataclass(frozen=True)
class _Move:
    """Elements to copy from input `number` to the output. `source` and `target`: bytes from the first element of either
    box.

    If `number` is None, the elements are copies of the constant. `item`: bytes of an element, if not the op's own.
    """

    number: int | None
    source: int
    target: int
    axes: tuple[Axis, ...]
    item: int | None = None


@dataclass(frozen=True)
class Moves(BoxRoutine):
    """An op as strided copies of inputs or of a constant. If `mapped`, the constant is a table that maps each byte."""

    note: str
    item: int
    constant: np.ndarray | None = None
    mapped: bool = False

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        held = [dense_strides(box.shape, self.item) for box in needs(net, op, output)]
        moves = _moves(net, op, output, held, dense_strides(output.shape, self.item))
        return [self._copying(move).body for move in moves]

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        bodies, entry = self.bodies(net, op, output), entry_cycles(constants=self.constant is not None)
        constants = 0 if self.constant is None else self.constant.nbytes
        cycles = sum(body.cycles + entry for body in bodies)
        return Cost(cycles, constants, constants_key=self.note, streams=False)

    def lowered(self, tile: Tile) -> Lowered | None:
        meaning = "by the byte read" if self.mapped else "around it"
        constants = list[ConstantArray]()
        if self.constant is not None:
            constants.append(ConstantArray(f"{tile.name}_constant", self.constant, _WORD, meaning))
        held = [operand.strides for operand in tile.inputs]
        moves = _moves(tile.net, tile.op, tile.output.box, held, tile.output.strides)
        try:
            return Lowered(tuple(constants), Routines(tuple(self._call(tile, move) for move in moves)))
        except _TooManyAxes:
            return None

    def _call(self, tile: Tile, move: _Move) -> RoutineCall:
        (body, last), output = self._copying(move), tile.output.address
        given = tile.inputs[move.number or 0].address
        source = Address(given.symbol, given.offset + move.source)
        first = output.offset + move.target
        targets = Address(output.symbol, first), Address(output.symbol, first + last)
        constant = Address(f"{tile.name}_constant") if self.mapped or move.number is None else 0
        return RoutineCall(function(self.note, body, constants=False), (source, *targets, constant))

    def _copying(self, move: _Move) -> Copying:
        found = transposition(move.axes, move.item or self.item, mapped=self.mapped, filling=move.number is None)
        if found is None:
            raise _TooManyAxes
        return found


def moves_of(net: Net, op: Op) -> Moves | None:
    """The routines for an op that moves or maps bytes; None for other ops, and for more axes than registers."""
    item = np.dtype(net.tensor(op.output).dtype).itemsize
    if isinstance(op.attributes, Lookup) and net.constants[op.inputs[1]].ndim == 1:
        table = net.constants[op.inputs[1]]
        if net.tensor(op.inputs[0]).dtype == "int8":
            table = np.roll(table, _TABLE_BYTES // 2)  # the order of the bytes read: non-negative values first
        return Moves("lookup", 1, table, mapped=True)
    moving = isinstance(op.attributes, Transpose | Slice | Concat | ResizeNearest | Pad)
    if not moving or any(name in net.constants for name in op.inputs):
        return None
    padding = None
    if isinstance(op.attributes, Pad):  # the value, repeated to fill a word
        value = np.array([op.attributes.value]).astype(net.tensor(op.output).dtype)
        padding = np.tile(value, max(_WORD // value.itemsize, 1))
    found = Moves(op.kind, item, padding)
    try:
        routines = list(found.codes(net, op, Box.whole(net.tensor(op.output).shape)))
    except _TooManyAxes:
        return None
    return found if len(routines) <= _MOST_MOVES else None


class _TooManyAxes(Exception):
    """Error: a routine needs more registers for its loops than there are."""


def _moves(net: Net, op: Op, output: Box, held: Sequence[Strides], made: Strides) -> Iterator[_Move]:
    """The copies for a box of the output. `held`: strides of the input boxes; `made`: strides of the output."""
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
        case ResizeNearest(rows=rows, columns=columns):
            yield from _resized(rows, columns, output, boxes[0], held[0], made)
        case Pad():
            yield from _padded(net, op, output, held[0], made)
        case _:
            yield _Move(0, 0, 0, _axes(shape, held[0], made))


def _resized(
    rows: Sequence[int], columns: Sequence[int], output: Box, box: Box, held: Strides, made: Strides
) -> Iterator[_Move]:
    """One move per run of rows and of columns."""
    runs = [list(_runs(places[output.start[axis] : output.stop[axis]])) for axis, places in ((1, rows), (2, columns))]
    for row, column in product(*runs):
        axes = [Axis(output.shape[0], held[0], made[0]), *row.axes(held[1], made[1]), *column.axes(held[2], made[2])]
        source = (row.source - box.start[1]) * held[1] + (column.source - box.start[2]) * held[2]
        target = row.target * made[1] + column.target * made[2]
        yield _Move(0, source, target, (*axes, Axis(output.shape[3], held[3], made[3])))


@dataclass(frozen=True)
class _Run:
    """Positions along an output axis that repeat `count` positions of the input, `step` apart, `times` each."""

    source: int
    target: int
    count: int
    step: int
    times: int

    def axes(self, held: int, made: int) -> tuple[Axis, Axis]:
        return Axis(self.count, self.step * held, self.times * made), Axis(self.times, 0, made)


def _runs(places: Sequence[int]) -> Iterator[_Run]:
    """The longest runs with a positive step, in sequence."""
    alike = [(place, len(list(same))) for place, same in groupby(places)]
    target = 0
    while alike:
        (source, times), count = alike[0], 1
        step = alike[1][0] - source if len(alike) > 1 else 0
        while step > 0 and count < len(alike) and alike[count] == (source + count * step, times):
            count += 1
        yield _Run(source, target, count, step if count > 1 else 0, times)
        target += count * times
        del alike[:count]


def _padded(net: Net, op: Op, output: Box, held: Strides, made: Strides) -> Iterator[_Move]:
    """The input's part of a box, and the fills around it: before and behind along each axis."""
    shape, before = net.tensor(op.inputs[0]).shape, op.of(Pad).before
    first = [max(start, edge) for start, edge in zip(output.start, before, strict=True)]
    stop = [min(stop, edge + size) for stop, edge, size in zip(output.stop, before, shape, strict=True)]
    if any(end <= start for start, end in zip(first, stop, strict=True)):
        yield from _filled(output, output, made)
        return
    inner, whole = Box(tuple(first), tuple(stop)), output
    yield _Move(0, 0, _place(inner, output, made), _axes(inner.shape, held, made))
    for axis in range(len(shape)):
        for start, end in ((whole.start[axis], first[axis]), (stop[axis], whole.stop[axis])):
            if end > start:
                yield from _filled(_along(whole, axis, start, end), output, made)
        whole = _along(whole, axis, first[axis], stop[axis])


def _along(box: Box, axis: int, start: int, stop: int) -> Box:
    starts, stops = ((*ends[:axis], end, *ends[axis + 1 :]) for ends, end in ((box.start, start), (box.stop, stop)))
    return Box(starts, stops)


def _place(box: Box, output: Box, made: Strides) -> int:
    """Bytes from the first element of the output's box to the first element of `box`."""
    return sum((a - b) * stride for a, b, stride in zip(box.start, output.start, made, strict=True))


def _filled(box: Box, output: Box, made: Strides) -> Iterator[_Move]:
    """A fill of a box with the constant: in words as far as elements are contiguous, then the rest."""
    item, target = made[-1], _place(box, output, made)
    outer, size = list(zip(box.shape[:-1], made[:-1], strict=True)), box.shape[-1]
    while outer and outer[-1][1] == size * item:
        size *= outer.pop()[0]
    words, rest = divmod(size * item, _WORD) if item < _WORD else (size, 0)
    axes = tuple(Axis(count, 0, stride) for count, stride in outer)
    if words:
        yield _Move(None, 0, target, (*axes, Axis(words, 0, max(item, _WORD))), max(item, _WORD))
    if rest:
        yield _Move(None, 0, target + words * _WORD, (*axes, Axis(rest // item, 0, item)))


def _axes(shape: Sequence[int], sources: Strides, targets: Strides) -> tuple[Axis, ...]:
    return tuple(map(Axis, shape, sources, targets))
