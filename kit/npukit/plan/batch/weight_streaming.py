"""The choice of constants to stream if not all fit: as few as possible, of the heaviest ops first."""

from __future__ import annotations

from dataclasses import replace

from npukit.accel.interface import Engines
from npukit.net.net import CORE
from npukit.plan.batch.batch import Batch
from npukit.plan.batch.weight_tiles import WEIGHT_TILE_BYTES, StreamWeights
from npukit.plan.ir.assignment import Assignment
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem

WEIGHT_TILES = tuple(
    StreamWeights(tile_bytes=times * WEIGHT_TILE_BYTES, tiles=tiles) for times in (1, 2, 4) for tiles in (3, 2)
)
"""Weight tiles to try. A few small weight tiles leave more memory, many large weight tiles keep the engines busy."""

SMALLEST = 256
"""Bytes of an op's constants, commands included, up to which streaming does not pay."""


def all_streamed(problem: Problem, wanted: Batch) -> Batch:
    """The batch with all possible constants streamed."""
    return replace(wanted, stream=wanted.stream.of(heaviest_ops(problem.graph, problem.engines, wanted.groups[0])))


def heaviest_ops(graph: Graph, engines: Engines, assignment: Assignment) -> list[str]:
    """Ops with streamable constants, the heaviest first."""
    sizes = {
        op.name: max(engines[op.engine].cost(graph.net, op, tile.box).constant_bytes for tile in assignment[op.name])
        for op in graph.ops
        if op.engine != CORE and assignment[op.name]
    }
    return sorted((name for name in sizes if sizes[name] > SMALLEST), key=lambda name: (-sizes[name], name))
