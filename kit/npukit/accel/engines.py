"""The engines of a board, and the assignment of ops to engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from npukit.accel.core_kernels import core_kernels_alone
from npukit.accel.core_waits import core_waits
from npukit.accel.cpu import Cpu
from npukit.accel.fusion import with_matches, with_patterns, with_subgraphs
from npukit.accel.interface import Accelerator, Cost, Engines, Plugin, whole_cycles
from npukit.accel.plugins import name_plugins, plugin_for, plugins_in
from npukit.board.board import Board
from npukit.board.cores import CORES
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.check import check_net
from npukit.net.net import CORE, LINK, NO_WORK, Net, Op
from npukit.net.ops import Reshape, TvmCode
from npukit.net.ops.table import macs

AS_ASKED = "--engine cpu"
"""The reason recorded for ops on the core if the user excludes the accelerators."""


def engines_of(board: Board) -> dict[str, Accelerator]:
    """The board's accelerators in the board's order, then the core."""
    return with_core(plugins_of(board), board)


def plugins_of(board: Board) -> dict[str, Plugin]:
    """The board's accelerators in the board's order. Registers the plug-in paths of the board file for this process."""
    name_plugins(plugins_in(board))
    return {slot.name: plugin_for(slot, board) for slot in board.accelerator}


def with_core(plugins: Mapping[str, Plugin], board: Board | None = None) -> dict[str, Accelerator]:
    """The plug-ins, then the core of the board, or of the reference hardware without a board."""
    return {**plugins, CORE: core_of(board) if board else Cpu()}


def core_of(board: Board) -> Cpu:
    """The core of the board's PEs, with the cores of other kinds of PEs beside it."""
    first, *others = ((cpu, Cpu(core=CORES[cpu], waits=core_waits(board))) for cpu in board.cpus)
    return first[1].beside(dict(others))


def engines_on(engines: Engines, cpu: str) -> Engines:
    """The engines of a PE with the core `cpu`."""
    core = engines.get(CORE)
    return {**engines, CORE: core.of(cpu)} if isinstance(core, Cpu) and core.others else engines


def with_own_passes(net: Net, engines: Engines) -> Net:
    """The net after the plug-ins' `net` passes."""
    for own in own_passes(engines.values(), "net"):
        net = check_net(own(net))
    return net


def with_rounding_of(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net with two roundings if an engine knows no other."""
    twice = any(engine.abilities.rounds_twice for engine in _used(engines, only).values())
    return replace(net, rounds_once=net.rounds_once and not twice)


def own_passes(engines: Iterable[Accelerator], place: str) -> list[Callable[..., Any]]:
    """The plug-ins' own passes at a place (a field of `OwnPasses`), in the board's order."""
    found = (getattr(getattr(engine, "passes", None), place, None) for engine in engines)
    return [own for own in found if own]


def relax_patterns(engines: Iterable[Accelerator]) -> list[tuple[Any, ...]]:
    """The plug-ins' patterns over the Relax module, each name prefixed with the engine's name."""
    return [(f"{engine.name}.{name}", *rest) for engine in engines for name, *rest in engine.abilities.relax_patterns]


def assign_engines(
    net: Net, engines: Mapping[str, Accelerator], *, only: str | None = None, slower_too: bool = False
) -> Net:
    """The net with each op on the engine that needs the fewest cycles for the whole op, and with the reason of each op
    on the core.

    `only`: the only accelerator to use; the core takes the remaining ops. `slower_too`: an accelerator gets every op
    that it takes, even if the core is faster. Then ops are fused where an engine takes several as one: subgraphs first,
    because subgraphs are larger, then patterns.
    """
    net = with_placed_ops(net, engines, only, slower_too=slower_too)
    return with_patterns_of(with_subgraphs_of(net, engines, only), engines, only, slower_too=slower_too)


def with_placed_ops(net: Net, engines: Engines, only: str | None = None, *, slower_too: bool = False) -> Net:
    """The net with each single op on an engine, by the rules of `assign_engines`."""
    used = _used(engines, only)
    return net.with_ops(tuple(_assign(net, op, used, only == CORE, slower_too) for op in net.ops))


def with_subgraphs_of(net: Net, engines: Engines, only: str | None = None) -> Net:
    """The net with subgraphs fused where an engine takes a subgraph as one op."""
    used = _used(engines, only)
    for engine in (each for each in used.values() if each.abilities.subgraphs):
        net = with_subgraphs(net, engine, used)
    return net


def with_patterns_of(net: Net, engines: Engines, only: str | None = None, *, slower_too: bool = False) -> Net:
    """The net with patterns fused where an engine takes a pattern as one op. With `slower_too` patterns compete with
    the core's generic code, because PEs that share an op cannot use the core's kernels for whole ops."""
    used = _used(engines, only)
    beside = {**used, CORE: engines[CORE]} if slower_too else used
    for engine in used.values():
        net = with_patterns(with_matches(net, engine, used), engine, beside)
    return net.with_ops(tuple(replace(op, pattern="") if op.pattern else op for op in net.ops))


def _used(engines: Engines, only: str | None) -> dict[str, Accelerator]:
    """The allowed engines. The core has its best kernels for whole ops."""
    core = _CoreAtItsBest(engines[CORE])
    if only is None:
        return {**engines, CORE: core}
    if only not in engines:
        accelerators = ", ".join(name for name in engines if name != CORE) or "none"
        raise NpukitError(f"--engine {only}: the board's accelerators are: {accelerators}", tries=["--engine cpu"])
    return {only: engines[only], CORE: core}


class _CoreAtItsBest(Cpu):
    """The core with its kernels for whole ops, chosen for each op when its cost is first requested."""

    def __init__(self, core: Accelerator) -> None:
        known = core if isinstance(core, Cpu) else Cpu()
        super().__init__(core=known.core, waits=known.waits)
        self._chosen: dict[str, Cpu] = {}

    def cost(self, net: Net, op: Op, output: Box) -> Cost:
        if op.name not in self._chosen:
            kernels = core_kernels_alone(net.alone(op.placed(CORE)), core=self.core)
            self._chosen[op.name] = Cpu(kernels, self.core, self.waits)
        return self._chosen[op.name].cost(net, op, output)


def refuse_cpu_ops(net: Net) -> Net:
    """The net. Raises an error if any op except a reshape is on the core, as `--strict` demands."""
    for op in net.ops:
        if op.engine == CORE and op.kind != Reshape.kind:
            raise NpukitError(
                f"--strict: {op.name} ({op.kind}) runs on the core: {op.reason}",
                tries=["build without --strict", "npukit ops"],
            )
    return net


def _assign(net: Net, op: Op, engines: Mapping[str, Accelerator], only_cpu: bool, slower_too: bool) -> Op:
    if op.engine == LINK:
        return op
    if op.kind == Reshape.kind:
        return op.placed(CORE, NO_WORK)
    if isinstance(op.attributes, TvmCode):
        return op.placed(CORE, op.attributes.why)
    if only_cpu:
        return op.placed(CORE, AS_ASKED)
    accelerators = [engine for name, engine in engines.items() if name != CORE and not engine.abilities.subgraphs]
    reasons = {engine.name: engine.refusal(net, op) for engine in accelerators}
    willing = [engine for engine in accelerators if reasons[engine.name] is None]
    if willing:
        best = min(willing, key=lambda engine: whole_cycles(net, op, engine))
        slower = None if slower_too else _slower_than_core(net, op, best, engines[CORE])
        return op.placed(CORE, slower) if slower else op.placed(best.name)
    none = "" if len(accelerators) < len(engines) - 1 else "the board has no accelerator"
    return op.placed(CORE, "; ".join(filter(None, reasons.values())) or none)


def _slower_than_core(net: Net, op: Op, engine: Accelerator, core: Accelerator) -> str | None:
    """The reason to keep an op on the core although an accelerator takes it, or None if the accelerator is as fast."""
    takes = whole_cycles(net, op, engine)
    # A lower bound of the core: SMLAD makes two products, Winograd saves 5 of 9, STR stores 4 bytes.
    if takes <= max(macs(net, op) // 5, net.tensor(op.output).bytes // 4):
        return None
    on_core = whole_cycles(net, op, core)
    return f"{engine.name} is slower than the core: {takes:,} cycles, not {on_core:,}" if takes > on_core else None
