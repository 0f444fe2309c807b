"""The engines of a board, and which op runs on which."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.cpu import Cpu
from npukit.accel.fusion import with_patterns, with_subgraphs
from npukit.accel.interface import Accelerator, Plugin
from npukit.accel.plugins import plugin_for
from npukit.board.board import Board
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops import Reshape, TvmCode

CPU = "cpu"

AS_ASKED = "--engine cpu"
"""The reason of ops that are on the core because the user leaves the accelerators out."""


def engines_of(board: Board) -> dict[str, Accelerator]:
    """The board's accelerators in its order, then the core."""
    return with_core(plugins_of(board))


def plugins_of(board: Board) -> dict[str, Plugin]:
    """The board's accelerators in its order."""
    return {slot.name: plugin_for(slot, board) for slot in board.accelerator}


def with_core(plugins: Mapping[str, Plugin]) -> dict[str, Accelerator]:
    return {**plugins, CPU: Cpu()}


def assign_engines(net: Net, engines: Mapping[str, Accelerator], *, only_cpu: bool = False) -> Net:
    """The net with each op on the accelerator that needs the fewest cycles, and the reason where that is the core.

    Then the ops that an accelerator takes as one are: subgraphs first, as they are larger, then patterns.
    """
    net = net.with_ops(tuple(_assign(net, op, engines, only_cpu) for op in net.ops))
    able = [] if only_cpu else list(engines.values())
    for engine in (each for each in able if each.abilities.subgraphs):
        net = with_subgraphs(net, engine, engines)
    for engine in able:
        net = with_patterns(net, engine, engines)
    return net


def refuse_cpu_ops(net: Net) -> None:
    """What `--strict` asks: an error if any op is off the accelerators."""
    for op in net.ops:
        if op.engine == CPU and op.kind != Reshape.kind:
            raise NpukitError(
                f"--strict: {op.name} ({op.kind}) runs on the core: {op.reason}",
                tries=["build without --strict", "npukit ops"],
            )


def _assign(net: Net, op: Op, engines: Mapping[str, Accelerator], only_cpu: bool) -> Op:
    if op.kind == Reshape.kind:
        return op.placed(CPU, "no work: its output lies on its input")
    if isinstance(op.attributes, TvmCode):
        return op.placed(CPU, op.attributes.why)
    if only_cpu:
        return op.placed(CPU, AS_ASKED)
    accelerators = [engine for name, engine in engines.items() if name != CPU and not engine.abilities.subgraphs]
    reasons = {engine.name: engine.refusal(net, op) for engine in accelerators}
    willing = [engine for engine in accelerators if reasons[engine.name] is None]
    if willing:
        return op.placed(min(willing, key=lambda engine: _cycles(net, op, engine)).name)
    none = "" if len(accelerators) < len(engines) - 1 else "the board has no accelerator"
    return op.placed(CPU, "; ".join(filter(None, reasons.values())) or none)


def _cycles(net: Net, op: Op, engine: Accelerator) -> int:
    return engine.cost(net, op, Box.whole(net.tensor(op.output).shape)).cycles
