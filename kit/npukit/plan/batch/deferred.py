"""Lazy ops: those at a network's end whose constants take longer to come than to be computed with.

They are done at a round's end for all waves, so that their constants come once.
"""

from __future__ import annotations

from npukit.board.board import Board
from npukit.net.box import Box
from npukit.net.net import Op
from npukit.plan.batch.batch import Round
from npukit.plan.emit.emitter import Engines
from npukit.plan.tensors.graph import Graph

LAZY = 4
"""Times as long as computing with them for one wave a lazy op's constants take to come."""


def lazy_from(graph: Graph, board: Board, engines: Engines, wanted: Round) -> int:
    """The first of the lazy ops at the end; never the first of all."""
    index = len(graph.ops)
    while not wanted.cuts and index > 1 and _is_lazy(graph, board, engines, wanted, graph.ops[index - 1]):
        index -= 1
    return index


def _is_lazy(graph: Graph, board: Board, engines: Engines, wanted: Round, op: Op) -> bool:
    weighs = any(name in graph.net.constants for name in op.inputs)
    if op.name not in wanted.streamed or not weighs or board.noc is None:
        return False
    engine, tiles = engines[op.engine], wanted.groups[0][op.name]
    whole = engine.cost(graph.net, op, Box.whole(graph.shape(op.output))).constant_bytes
    computed = max(engine.cost(graph.net, op, tile.box).cycles for tile in tiles)
    return whole / board.noc.dram_bytes_per_cycle > LAZY * wanted.lanes * computed
