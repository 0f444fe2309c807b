"""Assembly kernels of the core: chosen for a whole net at once, then available op by op."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from npukit.accel.core_elements import choices_of, products_of
from npukit.accel.core_moves import moves_of
from npukit.accel.core_nodes import CoreNodes, core_nodes
from npukit.accel.core_rows import parts_of, rows_of, total_of
from npukit.accel.core_waits import NO_WAITS, CoreWaits
from npukit.accel.core_writes import writes_of
from npukit.accel.cortex_m import kernel as cortex_m
from npukit.accel.cortex_m.layout import ELEMENT_TYPES, Layout, Order
from npukit.accel.cortex_m.lookups import lookups_of
from npukit.accel.cortex_m.network import KernelCall, KernelChoice, choose, choose_thriftily
from npukit.accel.cortex_m.reductions import reductions_of
from npukit.accel.interface import Address, ConstantArray, Cost, Field, Lowered, RoutineCall, Routines, Tile
from npukit.board.cores import CORTEX_M4F, CoreType
from npukit.net.arrangement import Arrangement
from npukit.net.box import Box
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Reshape
from npukit.net.requantize import quantization

WITH_DSP: tuple[Callable[[Net, Op], cortex_m.BoxRoutine | None], ...] = (
    rows_of,
    parts_of,
    total_of,
    products_of,
    choices_of,
    reductions_of,
)
"""Finders of routines that need DSP instructions."""
_ALIGNMENT = 16


@dataclass(frozen=True)
class OpKernels:
    """The kernels of an op: optionally a copy of the input with a border, in scratch memory; the op; optionally a fill
    of the output's border. The input is not read again after the copy, so the output may overwrite the input."""

    copy: cortex_m.Kernel | None
    main: cortex_m.Kernel
    border: cortex_m.Kernel | None
    arrangement: Arrangement | None

    @property
    def kernels(self) -> tuple[cortex_m.Kernel, ...]:
        return tuple(kernel for kernel in (self.copy, self.main, self.border) if kernel)

    @property
    def note(self) -> str:
        """The names of the kernels."""
        return f"{'input copied, ' * bool(self.copy)}{self.main.variant}{', border filled' * bool(self.border)}"

    @property
    def cost(self) -> Cost:
        copied = self._copy_place + self.copy.output.bytes + self.main.reads_beyond if self.copy else 0
        return Cost(
            cycles=sum(kernel.cycles for kernel in self.kernels),
            constant_bytes=sum(kernel.constant_bytes for kernel in self.kernels),
            scratch_bytes=max(copied, self.main.scratch_bytes),
            arrangement=self.arrangement,
            reads_beyond=0 if self.copy else self.main.reads_beyond,
            may_overwrite=(0,) if self.copy else self.main.may_overwrite,
            accesses=sum(kernel.accesses for kernel in self.kernels),
        )

    @property
    def _copy_place(self) -> int:
        """The offset of the copy in scratch memory, behind the scratch memory of the op itself."""
        return -(-self.main.scratch_bytes // _ALIGNMENT) * _ALIGNMENT

    def lowered(self, tile: Tile) -> Lowered:
        constants: list[ConstantArray] = []
        calls: list[RoutineCall] = []
        for kernel, role, places in self._calls(tile):
            held: Field = 0
            for constant in kernel.constants:
                held = Address(f"{tile.name}_{role}")
                values = constant.values.view(np.int32)
                constants.append(ConstantArray(held.symbol, values, constant.align, kernel.variant))
            routine = cortex_m.function(kernel.variant, kernel.body, constants=bool(kernel.constants))
            calls.append(RoutineCall(routine, (*places, held)))
        return Lowered(tuple(constants), Routines(tuple(calls)))

    def _calls(self, tile: Tile) -> Iterator[tuple[cortex_m.Kernel, str, tuple[Field, ...]]]:
        """Each kernel with the role of its constants and the first three arguments."""
        output, inputs = tile.output.address, tuple(operand.address for operand in tile.inputs)
        scratch: Field = tile.scratch or 0
        if self.copy and tile.scratch:
            copied = Address(tile.scratch.symbol, tile.scratch.offset + self._copy_place)
            yield self.copy, "input_border", (inputs[0], copied, 0)
            inputs = (copied,)
        yield self.main, "parameters", (*inputs, output, scratch)[:3]
        if self.border:
            yield self.border, "border", (output, output, 0)


@dataclass(frozen=True)
class CoreKernels:
    """The ops with assembly kernels.

    `ops`: kernels for whole outputs. `moves`: routines for any box of the output (moves, ops over rows, products,
    writes to a state). `notes`: for every op of the core the names of the kernels, or the reason why there are none.
    """

    ops: Mapping[str, OpKernels]
    moves: Mapping[str, cortex_m.BoxRoutine]
    notes: Mapping[str, str]
    code_bytes: int

    @property
    def costs(self) -> Mapping[str, tuple[str, Cost]]:
        """The names and the cost of each op's kernels, to compare choices."""
        return {name: (made.note, made.cost) for name, made in self.ops.items()}

    @property
    def cycles(self) -> int:
        """Cycles of the kernels in `ops`, without waits."""
        return sum(made.cost.cycles for made in self.ops.values())

    @property
    def constant_bytes(self) -> int:
        return sum(made.cost.constant_bytes for made in self.ops.values())

    def has(self, op: str) -> bool:
        return op in self.ops or op in self.moves


NO_KERNELS = CoreKernels({}, {}, {}, 0)


@dataclass(frozen=True)
class CostPreference:
    """Preferences for a choice of kernels.

    `code_worth`: by op name, the factor by which a byte of the op's code must save more than usual. `memory_relaxed`:
    True to choose the fastest layouts even if others nearly as fast would save a quarter of the memory.
    """

    code_worth: Mapping[str, float] = field(default_factory=dict)
    memory_relaxed: bool = False


USUAL = CostPreference()


def choose_core_kernels(
    net: Net,
    objective: str,
    preference: CostPreference = USUAL,
    core: CoreType = CORTEX_M4F,
    waits: CoreWaits = NO_WAITS,
    price: float = 0.0,
) -> CoreKernels:
    """Choose kernels and layouts for a net's ops on the core that are fast, or small, in total. `price`: assumed cost
    in cycles of a byte of constants in memory without waits."""
    if core.has_dsp:
        ops, reasons = _chosen(net, objective, preference, core, waits, price)
    else:
        reason = f"kernels in assembly want DSP instructions, which the {core.title} lacks"
        wanted = (op for op in net.ops if op.engine == CORE and not isinstance(op.attributes, Reshape))
        ops, reasons = {}, {op.name: reason for op in wanted}
    moves = {} if core.assembly == "none" else dict(_moves(net, core))
    notes = {op.name: f"plain C: {reasons[op.name]}" for op in net.ops if reasons.get(op.name)}
    routines = [kernel.routine for made in ops.values() for kernel in made.kernels]
    for op in (each for each in net.ops if each.name in moves):
        routines += moves[op.name].codes(net, op, Box.whole(net.tensor(op.output).shape))
    known = {name: made.note for name, made in {**ops, **moves}.items()}
    return CoreKernels(ops, moves, notes | known, sum({each.name: each.bytes for each in routines}.values()))


def _chosen(
    net: Net, objective: str, preference: CostPreference, core: CoreType, waits: CoreWaits, price: float
) -> tuple[Mapping[str, OpKernels], Mapping[str, str]]:
    """The kernels of ops that need certain tensor layouts, and the reasons of the other ops."""
    found = core_nodes(net, core)
    nodes, goal = found.nodes, "memory" if objective == "memory" else "latency"
    worth = {i: preference.code_worth[owner] for i, owner in enumerate(found.owners) if owner in preference.code_worth}
    of_constants = waits.at_price(price)
    if preference.memory_relaxed and goal == "latency":
        choice = choose(nodes, code_worth=worth, fetches=waits.fetches, constant_cycles=of_constants)
    else:
        choice = choose_thriftily(nodes, goal, worth, waits.fetches, of_constants)
    zeros = {op.name: quantization(net, op.output).zero_point for op in net.ops if op.name in found.owners}
    refused = {found.owners[call.node]: _refusal(call) for call in choice.calls if not call.kernel}
    return dict(_by_op(found, choice, zeros)), {**found.reasons, **refused}


def core_kernels_alone(net: Net, preference: CostPreference = USUAL, core: CoreType = CORTEX_M4F) -> CoreKernels:
    """Kernels of each op on the core with dense tensors, independent of the layouts of other ops. Only for tiles that
    are the whole op."""
    chosen = [choose_core_kernels(net.alone(op), "latency", preference, core) for op in net.ops if op.engine == CORE]
    return CoreKernels(
        ops={name: made for each in chosen for name, made in each.ops.items()},
        moves={name: made for each in chosen for name, made in each.moves.items()},
        notes={name: note for each in chosen for name, note in each.notes.items()},
        code_bytes=sum(each.code_bytes for each in chosen),
    )


def _moves(net: Net, core: CoreType) -> Iterator[tuple[str, cortex_m.BoxRoutine]]:
    """The core's ops with routines for any box. The choice of layouts leaves their tensors dense."""
    finders = (moves_of, writes_of, lookups_of, *(WITH_DSP if core.has_dsp else ()))
    for op in net.ops:
        found = (finder(net, op) for finder in finders if op.engine == CORE)
        if made := next(filter(None, found), None):
            yield op.name, made


def _by_op(found: CoreNodes, choice: KernelChoice, zeros: Mapping[str, int]) -> Iterator[tuple[str, OpKernels]]:
    mains = {call.node: call for call in choice.calls if call.kernel and call.inputs != (call.node,)}
    borders = {call.node: call.kernel for call in choice.calls if call.kernel and call.inputs == (call.node,)}
    for node, call in mains.items():
        name = found.owners[node]
        if name:
            assert call.kernel is not None
            source = call.inputs[0]
            copy = mains[source].kernel if choice.nodes[source].is_a(Reshape) else None
            arrangement = _arrangement(choice.layouts[node], zeros[name])
            yield name, OpKernels(copy, call.kernel, borders.get(node), arrangement)


def _arrangement(layout: Layout, zero_point: int) -> Arrangement | None:
    if layout.plain:
        return None
    return Arrangement(
        bytes=layout.bytes,
        origin=layout.origin,
        shape=layout.shape,
        strides=(layout.row_stride, layout.column_stride, layout.channel_stride),
        dtype=ELEMENT_TYPES[layout.order],
        subtracted=0 if layout.order is Order.PIXELS else zero_point,
    )


def _refusal(call: KernelCall) -> str:
    """Each reason with the excluded variants."""
    reasons: dict[str, list[str]] = {}
    for refusal in call.refusals:
        reasons.setdefault(refusal.reason, []).append(refusal.variant)
    return "; ".join(f"{', '.join(variants)}: {reason}" for reason, variants in reasons.items())
