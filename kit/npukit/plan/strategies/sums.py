"""Split-K: layers whose sums are made in parts, side by side on more PEs or one after the other in less memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from npukit.net.net import Net
from npukit.plan.layout.k_split import cut_along_depth, cut_as_wanted, deep, spread, worth_trying
from npukit.plan.predict.kernels import has_kernels, with_kernels
from npukit.plan.search.candidate import Proposals
from npukit.plan.strategies.drafts import drafts
from npukit.plan.strategies.layouts import pinned
from npukit.plan.strategies.list_schedules import list_schedules
from npukit.plan.strategies.streams import streams
from npukit.plan.tensors.graph import Graph
from npukit.plan.tensors.problem import Problem


def sums(problem: Problem) -> Proposals:
    """Frames of the net with the sums of its heaviest layers in parts."""
    for cut, wanted in _in_parts(problem):
        yield from list_schedules(cut)
        yield from pinned(spread(cut.net, wanted, cut.order))(cut)


def drafts_and_sums(problem: Problem) -> Proposals:
    """Frames of the drafts of the net, and of the net with the sums of its heaviest layers in parts."""
    return drafts(problem, *(cut for cut, _ in _in_parts(problem) if len(cut.order) > 1))


def depth(problem: Problem) -> Proposals:
    """Frames of the net with sums too deep for a PE's memory made in parts, one after the other."""
    if wanted := deep(problem.net, problem.engines):
        cut = _of(problem, cut_along_depth(problem.net, problem.engines, wanted))
        yield from streams(cut)
        yield from drafts(cut)


def _in_parts(problem: Problem) -> Iterator[tuple[Problem, Mapping[str, int]]]:
    """The net with sums in parts, and the number of parts by op, if worth trying."""
    pes = problem.equipped.order
    if wanted := worth_trying(problem.net, len(pes)):
        yield _of(problem.on(pes), cut_as_wanted(problem.net, problem.engines, wanted)), wanted


def _of(problem: Problem, net: Net) -> Problem:
    cut = replace(problem, graph=Graph(net))
    return with_kernels(cut) if has_kernels(problem) else cut
