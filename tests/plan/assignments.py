"""Assignments for tests."""

from __future__ import annotations

from npukit.net.box import Box
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.tensors.graph import Graph


def on_one_pe(graph: Graph, pe: int) -> Assignment:
    """Every op whole on the same PE."""
    return {op.name: (Tile(pe, Box.whole(graph.shape(op.output))),) for op in graph.ops}
