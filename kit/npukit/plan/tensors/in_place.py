"""Tiles that may lie on one of their operands, as it is not read later: a tensor's memory serves for the next."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.accel.interface import Accelerator
from npukit.net.box import Box
from npukit.plan.tensors.graph import Graph

Aliases = Mapping[str, tuple[str, ...]]
"""The tensors that an op's tiles may lie on, element by element, by op."""


def aliases(graph: Graph, engines: Mapping[str, Accelerator]) -> Aliases:
    """The operands of each op that it is the last to read, and reads once, if its engine can lay its output there."""
    found: dict[str, tuple[str, ...]] = {}
    for index, op in enumerate(graph.ops):
        sources, shape = graph.sources(op), graph.shape(op.output)
        may = engines[op.engine].cost(graph.net, op, Box.whole(shape)).aliases
        names = (sources[i] for i in may if sources.count(sources[i]) == 1 and graph.shape(sources[i]) == shape)
        found[op.name] = tuple(
            name for name in names if graph.consumers[name][-1] == index and name not in graph.outlasting
        )
    return found
