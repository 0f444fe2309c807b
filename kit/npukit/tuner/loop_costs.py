"""Predicted cost of an arrangement of a kernel's loops on the core: instructions for each term of a sum, before any
trial.

A term is a product and a sum. Unrolled terms share loads of common operands. Sums beyond the core's registers are
spilt. The constants are fitted to GCC's output for the loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import tvm_ffi
from tvm import tirx

from npukit.net.importer.arrangements import Nest, Tiling
from npukit.net.importer.schedules import extents, is_cheap, loops_of, sums_of

REGISTERS = 29
"""Registers for sums and their operands; the others hold intermediate values."""
TURN = 3
"""Instructions of an iteration of the innermost loop, without its terms."""
COSTLY = 6
"""Cost of an operand computed at the point of use, relative to a load."""
MOST_TERMS = 128
"""Limit on unrolled terms: more would not fit an instruction cache, nor pay."""


@dataclass(frozen=True)
class Sum:
    """A block with a sum. `around`: extents of the loops around it. `over`: extents of the loops over its terms.
    `reads`: for each tensor and axis, the loops that determine the index."""

    name: str
    around: tuple[int, ...]
    over: tuple[int, ...]
    reads: tuple[tuple[tuple[int, ...], ...], ...]
    cheap: bool


def sums_in(schedule: Any) -> list[Sum] | None:
    """The sums of an inlined kernel, or None if any is not a plain nest of loops."""
    found = [_sum(schedule, block) for block in sums_of(schedule)]
    return None if None in found else [each for each in found if each]


def _sum(schedule: Any, block: Any) -> Sum | None:
    loops = loops_of(schedule, block)
    if loops is None:
        return None
    body = schedule.get(block)
    places = {axis.var: number for number, axis in enumerate(body.iter_vars)}
    reads = tuple(tuple(_axes(part.min, places) for part in region.region) for region in body.reads)
    around, over = (extents(schedule, each) for each in loops)
    return Sum(body.name_hint, around, over, reads, is_cheap(body))


def _axes(index: Any, places: Mapping[Any, int]) -> tuple[int, ...]:
    """The loops that determine an index."""
    found: set[int] = set()

    def note(var: Any) -> None:
        if var in places:
            found.add(places[var])

    tvm_ffi.structural_walk(index, (tirx.Var, note))
    return tuple(sorted(found))


def predicted(sums: Sequence[Sum], tiling: Tiling) -> float:
    """Predicted instructions, for comparison only."""
    return sum(map(_of_sum, sums, tiling.sums))


def _of_sum(each: Sum, nest: Nest) -> float:
    factors = (*nest.inside, *nest.terms)
    terms, side_by_side = prod(factors), prod(nest.inside)
    if terms > MOST_TERMS:
        return inf
    # Distinct elements of each tensor in an iteration. Windows side by side share elements.
    loads = sum(prod(1 + sum(factors[loop] - 1 for loop in loops) for loops in axes) for axes in each.reads)
    spilt = max(0, side_by_side + min(loads, side_by_side) - REGISTERS)
    spills = 2 * spilt * max(1, prod(nest.terms) / 2)
    turn = 2 * terms + loads * (1 if each.cheap else COSTLY) + spills + TURN
    return prod((*each.around, *each.over)) * turn / terms
