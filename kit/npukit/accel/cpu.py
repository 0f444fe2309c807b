"""The core as an engine. The core takes every kind of op, with kernels from the code generator.

This module defines the constants of each kernel and the order of the arguments; `codegen/tir/ops` generates matching
kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from npukit.accel import interface
from npukit.accel.core_filters import IN_LANES, filter_constants, in_lanes
from npukit.accel.core_kernels import NO_KERNELS, CoreKernels
from npukit.accel.core_waits import NO_WAITS, CoreWaits
from npukit.accel.core_writes import apart_from_output
from npukit.board.board import Board
from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.data import data_folder
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Sums, TvmCode
from npukit.net.ops.table import SPECS


class Cpu:
    """The core of a PE, on any board. An op without an assembly kernel gets a kernel generated from TIR. `others`: the
    cores of PEs with another core, by name."""

    name = CORE
    commands: interface.CommandFormat | None = None
    abilities = interface.Abilities()

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

    def cost(self, net: Net, op: Op, output: Box) -> interface.Cost:
        cost = self._without_waits(net, op, output)
        if not self.waits:
            return cost
        has_kernels = self._has_kernels(net, op, output)
        of_code = self.waits.of_code(self.kernels.ops[op.name].kernels) if has_kernels else 0
        waits = of_code + self._waits_for_constants(net, op, output, cost.constant_bytes)
        return replace(cost, cycles=cost.cycles + waits) if waits else cost

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

    def _without_waits(self, net: Net, op: Op, output: Box) -> interface.Cost:
        if op.name in self.kernels.moves:
            return self.kernels.moves[op.name].cost(net, op, output)
        if self._has_kernels(net, op, output):
            return self.kernels.ops[op.name].cost
        constants = sum(
            -(-array.values.nbytes // array.align) * array.align
            for array in constants_of(net, op, output, "", self.core)
        )
        spec = SPECS[op.kind]
        if isinstance(op.attributes, TvmCode):
            share = output.elements / max(net.tensor(op.output).elements, 1)
            taken = round(self.core.c_factor(op.kind) * op.attributes.cycles * share)
            parts = _parts_taken(net, op, output)
            return interface.Cost(taken, constants, op.attributes.work_bytes, constants_key=parts, streams=False)
        taken = round(self.core.c_factor(op.kind) * spec.cycles_in_c(net, op, output))
        form = "channels" if spec.weights or spec.by_channel else None
        return interface.Cost(taken, constants, constants_key=form, streams=False)

    def choices(self, net: Net, op: Op) -> Sequence[interface.Choice]:
        """An empty tuple: the core's kernels are chosen for a whole network (`core_kernels.py`)."""
        return ()

    def lower(self, tile: interface.Tile) -> interface.Lowered:
        lowered = self._lowered(tile)
        if tile.op.name not in self.waits.near:
            return lowered
        return replace(lowered, constants=tuple(replace(array, near=True) for array in lowered.constants))

    def routines(self, tile: interface.Tile) -> tuple[interface.Routine, ...]:
        """The assembly routines for a tile of the core; empty if C computes the tile."""
        if tile.op.name not in self.kernels.moves and not self._has_kernels(tile.net, tile.op, tile.output.box):
            return ()
        code = self._lowered(tile).code
        return tuple(call.routine for call in code.calls) if isinstance(code, interface.Routines) else ()

    def _lowered(self, tile: interface.Tile) -> interface.Lowered:
        moves = self.kernels.moves.get(tile.op.name)
        if moves and (moved := moves.lowered(tile)):
            return moved
        if self._has_kernels(tile.net, tile.op, tile.output.box):
            return self.kernels.ops[tile.op.name].lowered(tile)
        constants = constants_of(tile.net, tile.op, tile.output.box, tile.name, self.core)
        addresses = (
            *(operand.address for operand in apart_from_output(tile)),
            *(interface.Address(array.symbol) for array in constants),
            tile.output.address,
            *([tile.scratch] if tile.scratch else []),
        )
        return interface.Lowered(constants, interface.Call(tile.name, addresses))

    def sources(self, board: Board) -> tuple[Path, ...]:
        """The sources of the functions that floating-point code may call."""
        return tuple(sorted((data_folder("firmware") / "libm").glob("*.c")))

    def _has_kernels(self, net: Net, op: Op, output: Box) -> bool:
        return op.name in self.kernels.ops and output == Box.whole(net.tensor(op.output).shape)


def constants_of(net: Net, op: Op, output: Box, prefix: str, core: CoreType) -> tuple[interface.ConstantArray, ...]:
    """The constants of the kernel for a box of the op's output, in the order of the arguments."""
    if SPECS[op.kind].weights:
        found = filter_constants(net, op, output, core)
    elif isinstance(op.attributes, Sums):
        chosen = net.constants[op.inputs[1]][output.start[-1] : output.stop[-1]]
        found = [("weights", in_lanes(net, op, chosen, core), f"weights of some inputs {IN_LANES}")]
    else:
        found = SPECS[op.kind].constants_of(net, op, output)
    return tuple(
        interface.ConstantArray(
            f"{prefix}_{role}", np.ascontiguousarray(values), max(4, values.dtype.itemsize), comment
        )
        for role, values, comment in found
    )


def _parts_taken(net: Net, op: Op, output: Box) -> str:
    """The parts of the op's constant operands that a box of the output needs, as a key."""
    taken = (operand_box(net, op, name, output) for name in op.inputs if name in net.constants)
    return " ".join(f"{box.start}-{box.stop}" for box in taken)


def operand_box(net: Net, op: Op, name: str, output: Box) -> Box:
    """The part of an operand for a box of the output."""
    return SPECS[op.kind].operand(net, op, name, output)


_: type[interface.Accelerator] = Cpu
