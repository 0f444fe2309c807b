"""The plan for one PE: every op a step, every tensor a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from npukit.accel.interface import Accelerator, Cost
from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.plan.cost import CHAIN_CYCLES
from npukit.plan.memory import Lifetime, extent, memory_use, pack
from npukit.plan.plan import Buffer, Compute, PePlan, Predicted, View

Engines = Mapping[str, Accelerator]


def computed_ops(net: Net) -> list[Op]:
    """The ops that are steps: a reshape is none, its output lies on its input."""
    return [op for op in net.ops if op.kind != "reshape"]


def storage_of(net: Net) -> dict[str, str]:
    """For each activation, the tensor whose bytes it lies on: itself, unless it is a reshape of another."""
    homes = {name: name for name in net.inputs}
    for op in net.ops:
        for name in op.outputs:
            homes[name] = homes[op.inputs[0]] if op.kind == "reshape" else name
    return homes


def plan_one_pe(net: Net, board: Board, engines: Engines, pe: int) -> PePlan:
    """Everything on one PE. It may not fit: see its `memory`."""
    ops = computed_ops(net)
    costs = [engines[op.engine].cost(net, op, Box.whole(net.tensor(op.output).shape)) for op in ops]
    buffers, activations = _buffers(net, ops, costs)
    memory = memory_use(board, sum(cost.constant_bytes for cost in costs), activations)
    steps = tuple(_compute(net, op, cost) for op, cost in zip(ops, costs, strict=True))
    return PePlan(pe, 0, steps, buffers, memory)


def predict_one_pe(pe: PePlan) -> Predicted:
    """Steps one after the other; those that follow each other on one engine are one chain."""
    computes = list(pe.computes())
    chains = len([engine for engine, _ in groupby(computes, key=lambda step: step.engine)])
    cycles = sum(step.cycles for step in computes) + chains * CHAIN_CYCLES
    return Predicted(cycles, cycles)


def scratch_name(op: Op) -> str:
    return f"{op.name} scratch"


def _compute(net: Net, op: Op, cost: Cost) -> Compute:
    inputs = tuple(_whole(net, name) for name in net.activations(op))
    scratch = scratch_name(op) if cost.scratch_bytes else None
    return Compute(op.name, op.engine, _whole(net, op.output), inputs, cost.cycles, scratch)


def _whole(net: Net, name: str) -> View:
    return View(name, Box.whole(net.tensor(name).shape))


def _buffers(net: Net, ops: list[Op], costs: list[Cost]) -> tuple[tuple[Buffer, ...], int]:
    lifetimes = dict(_tensor_lifetimes(net, ops))
    for step, (op, cost) in enumerate(zip(ops, costs, strict=True)):
        if cost.scratch_bytes:
            lifetimes[scratch_name(op)] = Lifetime(cost.scratch_bytes, step, step)
    offsets = pack(list(lifetimes.values()))
    placed = dict(zip(lifetimes, zip(offsets, lifetimes.values(), strict=True), strict=True))
    homes = storage_of(net)
    tensors = [_buffer(name, name, Box.whole(net.tensor(name).shape), *placed[home]) for name, home in homes.items()]
    scratches = [
        _buffer(name, "", Box.whole((life.bytes,)), offset, life)
        for name, (offset, life) in placed.items()
        if name not in homes
    ]
    return (*tensors, *scratches), extent(list(lifetimes.values()), offsets)


def _buffer(name: str, tensor: str, box: Box, offset: int, life: Lifetime) -> Buffer:
    return Buffer(name, tensor, box, life.bytes, offset, life.first, life.last)


def _tensor_lifetimes(net: Net, ops: list[Op]) -> Iterator[tuple[str, Lifetime]]:
    """Of each tensor that has bytes of its own: inputs from the start, outputs to the end."""
    homes, end = storage_of(net), max(len(ops) - 1, 0)
    first = dict.fromkeys(net.inputs, 0) | {op.output: step for step, op in enumerate(ops)}
    last = dict(first)
    for step, op in enumerate(ops):
        last |= {homes[name]: step for name in net.activations(op)}
    last |= {homes[name]: end for name in net.outputs}
    for name, begin in first.items():
        yield name, Lifetime(net.tensor(name).bytes, begin, last[name])
