"""Deferred ops: those at a network's end whose constants take longer to come than to be computed with.

They are done at a batch's end for all micro-batches, so that their constants come once.
"""

from __future__ import annotations

from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.batch.batch import Batch
from npukit.plan.tensors.problem import Problem

DEFERRED = 4
"""Times as long as computing with them for one micro-batch a deferred op's constants take to come."""


def deferred_from(problem: Problem, wanted: Batch) -> int:
    """The first of the deferred ops at the end; never the first of all."""
    index = len(problem.graph.ops)
    while index > 1 and _is_deferred(problem, wanted, problem.graph.ops[index - 1]):
        index -= 1
    return index


def _is_deferred(problem: Problem, wanted: Batch, op: Op) -> bool:
    weighs = any(name in problem.net.constants for name in op.inputs)
    if op.name not in wanted.stream.ops or not weighs or problem.board.noc is None:
        return False
    engine, tiles = problem.engines[op.engine], wanted.groups[0][op.name]
    whole = engine.cost(problem.net, op, Box.whole(problem.graph.shape(op.output))).constant_bytes
    computed = max(engine.cost(problem.net, op, tile.box).cycles for tile in tiles)
    return whole / problem.board.noc.dram_bytes_per_cycle > DEFERRED * wanted.pipeline.interleaved * computed
