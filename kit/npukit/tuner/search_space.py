"""The search space of a build: TVM's loops, the code of the core's kernels, plug-ins' choices, layouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from npukit.accel.choices import choices_of, with_choices
from npukit.accel.core_kernels import CostPreference
from npukit.accel.engines import plugins_of
from npukit.board.board import Board
from npukit.net.importer.loops import AS_WRITTEN, Blocking, LoopKernel, arrangement_of
from npukit.net.net import CORE, Net, Op
from npukit.net.ops import TvmCode
from npukit.plan.layout.tuned_choices import MEMORY_RELAXED, core_ops, kernel_key, kernel_name, network_key, worth_of
from npukit.project.build_folder import Build

BLOCKINGS = tuple(Blocking(0, factor, 1, across, rows) for factor, rows in ((4, 4), (8, 2)) for across in (1, 2))
"""Blockings, often good, for most loops. MetaSchedule continues from there for each kernel."""
USUAL_CODE, WORTHS = "code 1", ("code 0.25", "code 0")
"""Prices of a byte of code, relative to the usual price."""
MEMORY_SAVING = "memory-saving"
"""The memory-saving layouts of a network on a single core. The alternative is `memory-relaxed`."""


@dataclass(frozen=True)
class Parameter:
    """A choice to make. `layers`: the layers whose cost measures it. Empty for the whole frame."""

    key: str
    what: str
    usual: str
    choices: tuple[str, ...]
    layers: tuple[str, ...] = ()


def search_space(build: Build, kernels: Mapping[str, LoopKernel]) -> list[Parameter]:
    """The parameters of a build with these TVM kernels. Empty if there is nothing to choose."""
    net = build.net()
    found = [
        Parameter(key, kernel.name, str(AS_WRITTEN), tuple(map(str, BLOCKINGS)), kernel.layers)
        for key, kernel in kernels.items()
    ]
    if build.manifest.planned_for.objective != "memory":
        kernels_of_core = list(_core_kernels(net, build.board, build.manifest.summary))
        whole = _whole(net, build, layouts=len(kernels_of_core) > 1)
        found += [*_of_plugins(net, build.board), *kernels_of_core, *whole]
    return found


def _core_kernels(net: Net, board: Board, summary: Mapping[str, Any]) -> Iterable[Parameter]:
    """Parameters for the assembly kernels in use, by kind and shape."""
    assembled = {row["name"] for row in summary["ops"] if not (row["kernel"] or "plain C").startswith("plain C")}
    ops = (op for op in core_ops(net) if op.name in assembled)
    for key, same in _by_key(net, ops, board).items():
        yield Parameter(key, kernel_name(net, same[0], board), USUAL_CODE, WORTHS, tuple(op.name for op in same))


def _of_plugins(net: Net, board: Board) -> Iterable[Parameter]:
    """Parameters for the choices of plug-ins, by kind and shape."""
    plugins = plugins_of(board)
    for key, same in _by_key(net, (op for op in net.ops if op.choice), board).items():
        first, layers = same[0], tuple(op.name for op in same)
        others = tuple(each.name for each in choices_of(net, first, plugins) if each.name != first.choice)
        yield Parameter(key, f"{kernel_name(net, first, board)}, {first.engine}", first.choice, others, layers)


def _by_key(net: Net, ops: Iterable[Op], board: Board) -> dict[str, list[Op]]:
    """Ops of equal kind and shape together."""
    found: dict[str, list[Op]] = {}
    for op in ops:
        found.setdefault(kernel_key(net, op, board), []).append(op)
    return found


def _whole(net: Net, build: Build, *, layouts: bool) -> Iterable[Parameter]:
    """A parameter for layouts between kernels if a single core runs everything."""
    plan, options = build.plan(), build.manifest.planned_for
    key = network_key(net, build.board, options.objective, options.pes)
    what = f"{net.name} on {len(plan.pes)} PEs of {build.board.name}"
    if layouts and len(plan.pes) == 1 and all(op.engine == CORE for op in net.ops):
        yield Parameter(key, what.replace(" 1 PEs", " one PE"), MEMORY_SAVING, (MEMORY_RELAXED,))


@dataclass(frozen=True)
class Recipe:
    """A choice for each parameter, by key."""

    choices: Mapping[str, str]

    def preference(self, parameters: Iterable[Parameter]) -> CostPreference:
        worth: dict[str, float] = {}
        whole = ""
        for parameter in parameters:
            choice = self.choices[parameter.key]
            if parameter.usual == USUAL_CODE:
                worth |= dict.fromkeys(parameter.layers, worth_of(choice))
            whole = whole if parameter.layers else choice
        unusual = {op: each for op, each in worth.items() if each != 1}
        return CostPreference(unusual, memory_relaxed=whole == MEMORY_RELAXED)

    def net(self, net: Net, kernels: Mapping[str, LoopKernel], board: Board) -> Net:
        """The net with the chosen loops of TVM's kernels, and the chosen variants of ops on accelerators."""
        from npukit.net.importer.lowering import code_again

        code: dict[str, TvmCode] = {}
        ops = {op.name: op for op in net.ops}
        for key, kernel in kernels.items():
            made = code_again(kernel, arrangement_of(self.choices[key]))
            for name in kernel.layers:
                before = ops[name].attributes
                assert isinstance(before, TvmCode)
                changed = {"cycles": made.cycles, "loop": made.loop, "rows": made.rows}
                code[name] = replace(before, code=made.body, work_bytes=made.work_bytes, **changed)
        made = net.with_ops(tuple(replace(op, attributes=code[op.name]) if op.name in code else op for op in net.ops))
        return with_choices(made, plugins_of(board), lambda net, op: self.choices.get(kernel_key(net, op, board)))
