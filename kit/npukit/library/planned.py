"""The plan of a build's network for a library: for a single core, with the build's accelerators, or in plain C."""

from __future__ import annotations

from npukit import __version__
from npukit.accel.cpu import Cpu
from npukit.accel.engines import assign_engines, engines_of
from npukit.accel.interface import Engines
from npukit.errors import NpukitError
from npukit.net.net import CORE, LINK, Net
from npukit.net.passes.at_link import without_link
from npukit.plan.ir.plan import Plan
from npukit.plan.planner import Planned, plan_network, plan_with_kernels
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem
from npukit.project.build_folder import Build

ROOM = 1 << 28
"""Bytes assumed for a portable library. The firmware around the library decides whether the real memory is enough."""

PORTABLE_TRY = "npukit export BUILD --portable"


def planned_for_library(build: Build, portable: bool) -> tuple[Net, Plan, Engines]:
    """The net without the link's ops, the plan for a single PE, and the engines of the plan."""
    if not portable and build.board.core.type.assembly == "dsp":
        net, plan = build.net(), build.plan()
        _refuse_mesh(plan)
        engines = engines_of(build.board)
        again = _again(build, net, engines)
        if [pe.steps for pe in again.plan.pes] != [pe.steps for pe in plan.pes]:
            raise NpukitError(
                f"npukit {__version__} plans this network otherwise than npukit {build.manifest.npukit} did",
                tries=["build again"],
            )
        if any(op.engine == LINK for op in net.ops):
            net = without_link(net)
            again = _again(build, net, engines)
        return net, again.plan, again.engines
    # Every op on the core, without assembly, on a single PE with ample memory.
    whole, engines = without_link(build.net()), {CORE: Cpu()}
    net = assign_engines(whole.with_ops(tuple(part for op in whole.ops for part in op.parts)), engines, only=CORE)
    memory = tuple(m.model_copy(update={"size": ROOM}) for m in build.board.memory)
    roomy = build.board.model_copy(update={"memory": memory, "noc": None})
    return net, plan_network(net, roomy, engines, objective="latency", max_pes=1), engines


def _refuse_mesh(plan: Plan) -> None:
    """Raise an error if the plan needs more than a core and accelerators."""
    fault = way = ""
    if len(plan.pes) > 1:
        fault, way = f"the build runs on {len(plan.pes)} PEs; a library runs on one core", "npukit build MODEL --pes 1"
    elif any(pe.memory.banks for pe in plan.pes):
        fault = "the build's activations lie in several memories; a library has one"
        way = "a board file in which one memory holds activations"
    elif plan.dram:
        fault = "weights of the build are streamed from DRAM, for which a library has no network-on-chip"
        way = "a board whose memory holds the weights"
    if fault:
        raise NpukitError(fault, tries=[way, PORTABLE_TRY])


def _again(build: Build, net: Net, engines: Engines) -> Planned:
    problem = Problem(Graph(net), build.board, engines, max_pes=1)
    return plan_with_kernels(problem, build.plan().objective, build.manifest.preference)
