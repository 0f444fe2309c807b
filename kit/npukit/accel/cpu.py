"""The core as an engine. The core takes every kind of op, with kernels from the code generator.

This module defines the constants of each kernel and the order of the arguments; `codegen/tir/ops` generates matching
kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from npukit.accel.core_filters import IN_LANES, filter_constants, in_lanes
from npukit.accel.core_kernels import NO_KERNELS, CoreKernels
from npukit.accel.core_waits import NO_WAITS, CoreWaits
from npukit.accel.core_writes import apart_from_output
from npukit.accel.interface import (
    Abilities,
    Accelerator,
    Address,
    Call,
    Choice,
    CommandFormat,
    ConstantArray,
    Cost,
    Lowered,
    Routine,
    Routines,
    Tile,
)
from npukit.board.board import Board
from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.data import data_folder
from npukit.net.box import Box
from npukit.net.c_code.cycles import cycles_of
from npukit.net.c_code.rows import rows_of
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import (
    ArgMax,
    AveragePool,
    Concat,
    Conv2d,
    Dense,
    DepthwiseConv2d,
    Dequantize,
    Lookup,
    Matmul,
    MaxPool,
    Mean,
    Norm,
    NormBySquares,
    Quantize,
    ResizeBilinear,
    ResizeNearest,
    Softmax,
    Squares,
    Sums,
    TopK,
    Total,
    TransposeConv2d,
    TvmCode,
)
from npukit.net.receptive import needs
from npukit.net.reference.softmax import exp_table
from npukit.net.requantize import quantization
from npukit.net.specs.table import SPECS


class Cpu:
    """The core of a PE, on any board. An op without an assembly kernel gets a kernel generated from TIR.

    `others`: the cores of PEs with another core, by name.
    """

    name = CORE
    commands: CommandFormat | None = None
    abilities = Abilities()

    def __init__(
        self,
        kernels: CoreKernels = NO_KERNELS,
        core: CoreType = CORTEX_M4F,
        waits: CoreWaits = NO_WAITS,
        others: Mapping[str, Cpu] = MappingProxyType({}),
    ) -> None:
        self.kernels, self.core, self.waits, self.others = kernels, core, waits, others

    def of(self, cpu: str) -> Cpu:
        """The core named `cpu`, by default this one."""
        return self.others.get(cpu, self)

    def beside(self, others: Mapping[str, Cpu]) -> Cpu:
        """The core with the board's other cores beside it."""
        return Cpu(self.kernels, self.core, self.waits, others)

    def with_kernels(self, chosen: Callable[[CoreType], CoreKernels]) -> Cpu:
        """The core and the other cores, each with the kernels that `chosen` returns for the core's type."""
        others = {cpu: other.with_kernels(chosen) for cpu, other in self.others.items()}
        return Cpu(chosen(self.core), self.core, self.waits, others)

    def refusal(self, net: Net, op: Op) -> str | None:
        return None

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        cost = self._without_waits(net, op, output)
        if not self.waits:
            return cost
        waits = self._waits(net, op, output, cost.constant_bytes)
        return replace(cost, cycles=cost.cycles + waits) if waits else cost

    def _waits(self, net: Net, op: Op, output: Box, constants: int) -> int:
        has_kernels = self._has_kernels(net, op, output)
        of_code = self.waits.of_code(self.kernels.ops[op.name].kernels) if has_kernels else 0
        return of_code + self._waits_for_constants(net, op, output, constants)

    def _waits_for_constants(self, net: Net, op: Op, output: Box, constants: int) -> int:
        if self._has_kernels(net, op, output):
            kernels = self.kernels.ops[op.name].kernels
            return sum(self.waits.of_constants(op.name, each.constant_bytes, each.sweeps) for each in kernels)
        return self.waits.of_constants(op.name, constants, output.elements // output.shape[-1] if output.shape else 1)

    def with_constants_near(self, net: Net, room: int) -> Cpu:
        """The core with constants in `room` bytes of memory without waits, chosen by cycles saved per byte."""
        gains: dict[str, tuple[int, int]] = {}
        for op in (each for each in net.ops if each.engine == CORE):
            output = Box.whole(net.tensor(op.output).shape)
            size = self._without_waits(net, op, output).constant_bytes
            cycles = self._waits_for_constants(net, op, output, size)
            if cycles:
                gains[op.name] = cycles, size
        return Cpu(self.kernels, self.core, self.waits.with_near(gains, room))

    def constants_near(self, net: Net) -> int:
        """Bytes of the constants in memory without waits."""
        near = (op for op in net.ops if op.name in self.waits.near)
        return sum(self.cost(net, op, Box.whole(net.tensor(op.output).shape)).constant_bytes for op in near)

    def _without_waits(self, net: Net, op: Op, output: Box) -> Cost:
        if op.name in self.kernels.moves:
            return self.kernels.moves[op.name].cost(net, op, output)
        if self._has_kernels(net, op, output):
            return self.kernels.ops[op.name].cost
        constants = sum(aligned_bytes(array) for array in constants_of(net, op, output, "", self.core))
        form = "channels" if isinstance(op.attributes, OF_CHANNELS) else None
        if isinstance(op.attributes, TvmCode):
            share = output.elements / max(net.tensor(op.output).elements, 1)
            whole = cycles_of(net, op)
            taken = round(self.core.c_factor(op.kind) * whole * share)
            parts = _parts_taken(net, op, output)
            return Cost(taken, constants, op.attributes.work_bytes, constants_key=parts, streams=False)
        per_output, per_product, per_loop = SPECS[op.kind].core_cycles
        of_outputs = output.elements * (per_output + per_product * _products(net, op, output))
        taken = self.core.c_factor(op.kind) * (of_outputs + per_loop * _loops(net, op, output))
        return Cost(round(taken), constants, constants_key=form, streams=False)

    def choices(self, net: Net, op: Op) -> Sequence[Choice]:
        """An empty tuple: the core's kernels are chosen for a whole network (`core_kernels.py`)."""
        return ()

    def lower(self, tile: Tile) -> Lowered:
        lowered = self._lowered(tile)
        if tile.op.name not in self.waits.near:
            return lowered
        return replace(lowered, constants=tuple(replace(array, near=True) for array in lowered.constants))

    def routines(self, tile: Tile) -> tuple[Routine, ...]:
        """The assembly routines for a tile of the core; empty if C computes the tile."""
        if tile.op.name not in self.kernels.moves and not self._has_kernels(tile.net, tile.op, tile.output.box):
            return ()
        code = self._lowered(tile).code
        return tuple(call.routine for call in code.calls) if isinstance(code, Routines) else ()

    def _lowered(self, tile: Tile) -> Lowered:
        moves = self.kernels.moves.get(tile.op.name)
        if moves and (moved := moves.lowered(tile)):
            return moved
        if self._has_kernels(tile.net, tile.op, tile.output.box):
            return self.kernels.ops[tile.op.name].lowered(tile)
        constants = constants_of(tile.net, tile.op, tile.output.box, tile.name, self.core)
        addresses = (
            *(operand.address for operand in apart_from_output(tile)),
            *(Address(array.symbol) for array in constants),
            tile.output.address,
            *([tile.scratch] if tile.scratch else []),
        )
        return Lowered(constants, Call(tile.name, addresses))

    def sources(self, board: Board) -> tuple[Path, ...]:
        """The sources of the functions that floating-point code may call."""
        return tuple(sorted((data_folder("firmware") / "libm").glob("*.c")))

    def _has_kernels(self, net: Net, op: Op, output: Box) -> bool:
        return op.name in self.kernels.ops and output == Box.whole(net.tensor(op.output).shape)


OF_CHANNELS = Conv2d | DepthwiseConv2d | Dense | TransposeConv2d | Sums | Lookup
"""Ops whose constants depend only on the output channels of a tile."""


def aligned_bytes(array: ConstantArray) -> int:
    """Bytes of an array with the alignment gap behind it."""
    return -(-array.values.nbytes // array.align) * array.align


def constants_of(net: Net, op: Op, output: Box, prefix: str, core: CoreType) -> tuple[ConstantArray, ...]:
    """The constants of the kernel for a box of the op's output, in the order of the arguments."""
    attributes = op.attributes
    match attributes:
        case Conv2d() | DepthwiseConv2d() | Dense() | TransposeConv2d():
            return tuple(_array(prefix, *each) for each in filter_constants(net, op, output, core))
        case Softmax():
            table = exp_table(quantization(net, op.inputs[0]).scale, attributes.beta).astype(np.int32)
            exp = _array(prefix, "exp", table, "exp(-d) in Q0.31 for d steps below the largest")
            return (exp, *_first_of_part(net, op, output, prefix))
        case Norm():
            return (*_constant_operands(net, op, output, prefix), *_first_of_part(net, op, output, prefix))
        case Sums():
            chosen = net.constants[op.inputs[1]][output.start[-1] : output.stop[-1]]
            return (_array(prefix, "weights", in_lanes(net, op, chosen, core), f"weights of some inputs {IN_LANES}"),)
        case Total():
            named = zip(("bias", "multipliers", "shifts"), op.inputs[-3:], strict=True)
            channels = slice(output.start[-1], output.stop[-1])
            zero = np.array([quantization(net, op.output).zero_point], np.int32)
            of_each = (_array(prefix, role, net.constants[name][channels], "of each channel") for role, name in named)
            return (
                *of_each,
                _array(prefix, "zero", zero, "of the output: data, as PEs of other blocks have the same code"),
            )
        case Dequantize():
            scale = np.array([quantization(net, op.inputs[0]).scale], np.float32)
            return (_array(prefix, "scale", scale, "of the quantised numbers"),)
        case Quantize():
            return tuple(_steps(net, op, output, prefix))
        case ResizeNearest() | ResizeBilinear():
            return tuple(_places(net, op, attributes, output, prefix))
    return _constant_operands(net, op, output, prefix)


def _steps(net: Net, op: Op, output: Box, prefix: str) -> Iterator[ConstantArray]:
    """The offsets and steps of a quantisation."""
    told = {"offset": "taken away before dividing", "step": "of the quantised numbers"}
    for (role, text), name in zip(told.items(), op.inputs[1:], strict=True):
        yield _array(prefix, role, _part(net.constants[name], operand_box(net, op, name, output)), text)


def _first_of_part(net: Net, op: Op, output: Box, prefix: str) -> Iterator[ConstantArray]:
    """The index in its row of the first number to compute, if a tile computes part of each row. The index is data: PEs
    with parts of equal length have the same code."""
    if output.shape[-1:] != net.tensor(op.output).shape[-1:]:
        yield _array(prefix, "first", np.array(output.start[-1:], np.int32), "of each row's numbers that is made")


def _places(
    net: Net, op: Op, attributes: ResizeNearest | ResizeBilinear, output: Box, prefix: str
) -> Iterator[ConstantArray]:
    """The rows and columns of the input for each row and column of the output."""
    what = "which it is made of" if isinstance(attributes, ResizeNearest) else "(low, high, 1024ths from low)"
    (held,) = needs(net, op, output)
    for axis, name, places in ((1, "rows", attributes.rows), (2, "columns", attributes.columns)):
        made = _resized(places, axis, output, held)
        yield _array(prefix, name, made, f"for each of the output's, the input's {what}")


def _resized(places: Sequence[Any], axis: int, output: Box, held: Box) -> np.ndarray:
    """The input positions along an axis for a box of the output, counted from the input's box `held`."""
    chosen = np.array(places[output.start[axis] : output.stop[axis]], np.int16)
    chosen.reshape(len(chosen), -1)[:, :2] -= held.start[axis]
    return chosen


def _constant_operands(net: Net, op: Op, output: Box, prefix: str) -> tuple[ConstantArray, ...]:
    names = [name for name in op.inputs if name in net.constants]
    roles = ["operand", *(f"operand_{number}" for number in range(2, len(names) + 1))]
    return tuple(
        _array(prefix, role, _part(net.constants[name], operand_box(net, op, name, output)), "a constant operand")
        for role, name in zip(roles, names, strict=False)
    )


def _parts_taken(net: Net, op: Op, output: Box) -> str:
    """The parts of the op's constant operands that a box of the output needs, as a key."""
    taken = (operand_box(net, op, name, output) for name in op.inputs if name in net.constants)
    return " ".join(f"{box.start}-{box.stop}" for box in taken)


def operand_box(net: Net, op: Op, name: str, output: Box) -> Box:
    """The part of an operand for a box of the output: the part that broadcasts to the box, or the whole operand."""
    shape = net.tensor(name).shape
    if isinstance(op.attributes, Concat):
        whole, axis = Box.whole(shape), op.attributes.axis
        starts, stops = (
            (*box[:axis], end[axis], *box[axis + 1 :])
            for box, end in ((output.start, whole.start), (output.stop, whole.stop))
        )
        return Box(starts, stops)
    if rows := rows_of(net, op):
        return rows.box(f"p{op.inputs.index(name)}", output)
    if not (SPECS[op.kind].elementwise or isinstance(op.attributes, Norm | NormBySquares)) or isinstance(
        op.attributes, Lookup
    ):
        return Box.whole(shape)
    starts, stops = (corner[len(corner) - len(shape) :] for corner in (output.start, output.stop))
    spans = [(0, 1) if size == 1 else span for size, *span in zip(shape, starts, stops, strict=True)]
    return Box(tuple(a for a, _ in spans), tuple(b for _, b in spans))


def _part(values: np.ndarray, box: Box) -> np.ndarray:
    return values[tuple(slice(a, b) for a, b in zip(box.start, box.stop, strict=True))]


def _array(prefix: str, role: str, values: np.ndarray, comment: str) -> ConstantArray:
    align = max(4, values.dtype.itemsize)
    return ConstantArray(f"{prefix}_{role}", np.ascontiguousarray(values), align, comment)


def _products(net: Net, op: Op, output: Box) -> float:
    """Products per output element, or other steps of equal duration."""
    source = net.tensor(op.inputs[0])
    match op.attributes:
        case Conv2d() | Dense() | Sums():
            return net.tensor(op.inputs[1]).elements // net.tensor(op.output).shape[-1]
        case Total():
            return len(op.inputs) - 3
        case TransposeConv2d(strides=strides):
            return net.tensor(op.inputs[1]).elements // (net.tensor(op.output).shape[-1] * strides[0] * strides[1])
        case DepthwiseConv2d():
            return prod(net.tensor(op.inputs[1]).shape[1:3])
        case AveragePool(window=window) | MaxPool(window=window):
            return prod(window)
        case Matmul() | TopK():
            return source.shape[-1]
        case Mean() | Squares():
            return source.elements // net.tensor(op.output).elements
        case Softmax() | Norm() | NormBySquares():
            return _read_of_a_row(net, op) / output.shape[-1]
        case ArgMax(axis=axis):
            return source.shape[axis]
    return 0


def _read_of_a_row(net: Net, op: Op) -> int:
    """Numbers read before the first number of a row is computed."""
    given = isinstance(op.attributes, NormBySquares)
    return net.tensor(op.inputs[1]).elements if given else net.tensor(op.inputs[0]).shape[-1]


def _loops(net: Net, op: Op, output: Box) -> int:
    """Starts of the innermost loop, which runs along the rows of a window, or else along the last axis."""
    if isinstance(op.attributes, Conv2d):
        return output.elements * net.tensor(op.inputs[1]).shape[1]
    return output.elements // output.shape[-1] if output.shape else 1


_: type[Accelerator] = Cpu
