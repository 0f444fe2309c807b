"""Assignments for tests."""

from __future__ import annotations

from npukit.net.box import Box
from npukit.plan.emit.allocate import emit_frame
from npukit.plan.ir.assignment import Assignment, Tile
from npukit.plan.ir.plan import Plan
from npukit.plan.predict.memory import missing_bytes
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem


def on_one_pe(graph: Graph, pe: int) -> Assignment:
    """Every op whole on the same PE."""
    return {op.name: (Tile(pe, Box.whole(graph.shape(op.output))),) for op in graph.ops}


def emitted_frame(problem: Problem, assignment: Assignment) -> Plan:
    """The plan of one frame: with patient PEs if it fits."""
    plan = emit_frame(problem, assignment, patient=True)
    return emit_frame(problem, assignment, patient=False) if missing_bytes(problem.board, plan) else plan
