"""One role's program, gathered: tiles, constants, commands, kernels, the steps of a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from npukit.accel.interface import Accelerator, Call, Commands, Lowered, Tile
from npukit.codegen.constants import Command, Constants, lay_out
from npukit.codegen.frame import ChainStep, KernelStep, Step
from npukit.codegen.kernels import CFunction, describe, kernel, kernels_as_c
from npukit.codegen.names import Names
from npukit.codegen.operands import Arena
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.plan.plan import Compute, PePlan

CPU = "cpu"


@dataclass(frozen=True)
class Part:
    """A tile as its engine lowered it; `layer` counts the ops of this program, `last` is the op's last tile."""

    tile: Tile
    engine: Accelerator
    lowered: Lowered
    layer: int
    last: bool

    @property
    def finished(self) -> int | None:
        return self.layer if self.last else None


@dataclass(frozen=True)
class Program:
    """Everything the templates and the frame need."""

    arena: Arena
    parts: tuple[Part, ...]
    constants: Constants
    kernels: tuple[CFunction, ...]
    steps: tuple[Step, ...]


def gather(net: Net, pe: PePlan, engines: Mapping[str, Accelerator]) -> Program:
    """The program of one PE, and of all that have its role."""
    arena = Arena(net, pe)
    parts = tuple(_parts(net, pe, arena, engines))
    commands = [command for run in _runs(parts) for command in _chain(run)]
    constants = lay_out((array for part in parts for array in part.lowered.constants), commands)
    made = [kernel(part.tile, part.lowered.constants) for part in parts if part.engine.name == CPU]
    functions, kernel_names = kernels_as_c(made)
    steps = tuple(step for run in _runs(parts) for step in _steps(run, kernel_names))
    return Program(arena, parts, constants, tuple(functions), steps)


def _parts(net: Net, pe: PePlan, arena: Arena, engines: Mapping[str, Accelerator]) -> Iterator[Part]:
    names, computes = Names(), list(pe.computes())
    layers = {op: index for index, op in enumerate(dict.fromkeys(step.op for step in computes))}
    ops = {op.name: op for op in net.ops}
    last = {step.op: index for index, step in enumerate(computes)}
    for index, step in enumerate(computes):
        inputs = tuple(arena.operand(view) for view in step.inputs)
        tile = Tile(names.identifier(step.op), net, ops[step.op], arena.operand(step.output), inputs)
        engine = _engine(step, engines)
        yield Part(tile, engine, engine.lower(tile), layers[step.op], last[step.op] == index)


def _engine(step: Compute, engines: Mapping[str, Accelerator]) -> Accelerator:
    if step.engine not in engines:
        raise NpukitError(f"{step.op}: the plan wants the engine {step.engine}, which the board does not have")
    return engines[step.engine]


def _runs(parts: Sequence[Part]) -> Iterator[tuple[Part, ...]]:
    """Parts that follow each other as commands of one engine; every call by itself."""
    run: list[Part] = []
    for part in parts:
        if run and not (_is_chained(part) and _is_chained(run[-1]) and part.engine is run[-1].engine):
            yield tuple(run)
            run = []
        run.append(part)
    if run:
        yield tuple(run)


def _is_chained(part: Part) -> bool:
    return isinstance(part.lowered.code, Commands)


def _chain(run: Sequence[Part]) -> list[Command]:
    """The commands of a run, linked in order."""
    unlinked = [command for part in run for command in _commands(part)]
    following = [*(symbol for symbol, _, _ in unlinked[1:]), None]
    form = run[0].engine.commands
    if not unlinked or form is None:
        return []
    return [
        Command(symbol, form, struct, part.layer, then, describe(part.tile, part.engine.name))
        for (symbol, struct, part), then in zip(unlinked, following, strict=True)
    ]


def _commands(part: Part) -> list[tuple]:
    code = part.lowered.code
    if not isinstance(code, Commands):
        return []
    several = len(code.structs) > 1
    names = [f"{part.tile.name}_command{f'_{i}' if several else ''}" for i in range(len(code.structs))]
    return [(name, struct, part) for name, struct in zip(names, code.structs, strict=True)]


def _steps(run: Sequence[Part], kernel_names: Mapping[str, str]) -> Iterator[Step]:
    form = run[0].engine.commands
    if _is_chained(run[0]) and form is not None:
        marks = [(symbol, part, symbol == _commands(part)[-1][0]) for part in run for symbol, _, _ in _commands(part)]
        yield ChainStep(form, tuple((symbol, part.finished if end else None) for symbol, part, end in marks))
        return
    for part in run:
        code = part.lowered.code
        assert isinstance(code, Call)
        name = kernel_names.get(code.function, code.function)
        yield KernelStep(Call(name, code.arguments), part.finished, part.engine.name != CPU)
