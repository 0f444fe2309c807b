"""Selections between new lines and a state on the core: a routine that writes the new lines, for any box."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import BoxRoutine, entry_cycles, function
from npukit.accel.cortex_m.kernels.rows import Around
from npukit.accel.cortex_m.kernels.transpose import dense_strides
from npukit.accel.cortex_m.kernels.written import MOST_AXES, WrittenLines, written
from npukit.accel.interface import Cost, Lowered, Operand, RoutineCall, Routines, Tile
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Select


@dataclass(frozen=True)
class WriteRoutine(BoxRoutine):
    """A selection, line by line, between a new line and a state. The new line is the same along the last axis but one.
    The result replaces the state: most of the state stays in place."""

    note: str = "written in place"

    def bodies(self, net: Net, op: Op, output: Box) -> list[Assembly]:
        made, new = (dense_strides((*output.shape[:-2], count, output.shape[-1]), 1) for count in (output.shape[-2], 1))
        return [self._body(output.shape, 1, new, made)]

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        return Cost(self.bodies(net, op, output)[0].cycles + entry_cycles(constants=False), 0, aliases=(2,))

    def lowered(self, tile: Tile) -> Lowered:
        condition, new = apart_from_output(tile)
        shape, strides = tile.output.box.shape, tile.output.strides
        body = self._body(shape, condition.strides[-2], new.strides, strides)
        code = function(self.note, body, constants=False)
        call = RoutineCall(code, (condition.address, new.address, tile.output.address, 0))
        return Lowered((), Routines((call,)))

    @staticmethod
    def _body(shape: tuple[int, ...], conditions: int, new: tuple[int, ...], made: tuple[int, ...]) -> Assembly:
        axes = zip(shape[:-2], new, made, strict=False)
        around = tuple(Around(size, (source, target)) for size, source, target in axes if size > 1)
        return written(WrittenLines(shape[-1], shape[-2], conditions, made[-2], around))


def apart_from_output(tile: Tile) -> tuple[Operand, ...]:
    """The operands of a tile outside the output's memory: all but the state of a selection in place."""
    return tile.inputs[:2] if _is_in_place(tile.net, tile.op) else tile.inputs


def writes_of(net: Net, op: Op) -> WriteRoutine | None:
    """The routine for a selection that changes lines of a state; None for other ops."""
    if not _is_in_place(net, op):
        return None
    shape = net.tensor(op.output).shape
    condition, new, held = (net.tensor(name) for name in op.inputs)
    if not 2 <= len(shape) <= MOST_AXES + 2 or held.shape != shape or held.dtype != "int8":
        return None
    by_line = len(condition.shape) == len(shape) and prod(condition.shape) == condition.shape[-2] == shape[-2]
    return WriteRoutine() if by_line and new.shape == (*shape[:-2], 1, shape[-1]) else None


def _is_in_place(net: Net, op: Op) -> bool:
    """True for a selection between a tensor and a state into the state, which stays at one address."""
    pairs = ((state.input, state.output) for state in net.states)
    return isinstance(op.attributes, Select) and (op.inputs[2], op.output) in pairs
