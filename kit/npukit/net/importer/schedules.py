"""Schedules of the loops of TVM's kernels: inlining of intermediate results, and blocking of sums.

No schedule reorders the terms of a sum, so no arrangement changes a kernel's results by a single bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import IRModule

from npukit.net.importer.loops import LoopArrangement, Nest

ISLAND = "island"
"""Name of the function to lower."""

_REDUCTION = 2
"""TVM's number for reduction axes."""


def scheduled(function: Any, arrangement: LoopArrangement) -> IRModule:
    """The function's loops in the given arrangement."""
    schedule = _inlined(function, arrangement.apart)
    for number, block in enumerate(sums_of(schedule)):
        _place(schedule, block, number, arrangement)
    return schedule.mod


def row_by_row(function: Any) -> IRModule | None:
    """The function with each row complete before the next. All blocks move into a loop of the result: the innermost one
    without repeated work. None if no loop qualifies."""
    schedule = _inlined(function)
    blocks = _blocks(schedule)
    for place in reversed(range(len(schedule.get_loops(blocks[-1])) if blocks else 0)):
        trial = schedule.copy()
        *others, last = _blocks(trial)
        loop = trial.get_loops(last)[place]
        moved = all(_try(trial.compute_at, each, loop) for each in reversed(others))
        if moved and _work(trial) == _work(schedule):
            for block in sums_of(trial):
                terms = sum(1 for kind in _kinds(trial, block) if kind == _REDUCTION)
                _begin(trial, block, trial.get_loops(block)[-terms])
            return trial.mod
    return None


def opened(function: Any) -> Any:
    """A schedule of the function, still as written by TVM."""
    module = IRModule({ISLAND: function.with_attr("global_symbol", ISLAND)})
    return s_tir.Schedule(module, error_render_level="none")


def _inlined(function: Any, apart: bool = False) -> Any:
    schedule = opened(function)
    inline(schedule, apart)
    return schedule


def _work(schedule: Any) -> int:
    """The total iterations of all blocks, terms of sums included."""
    return sum(prod(extents(schedule, schedule.get_loops(block))) for block in _blocks(schedule))


def inline(schedule: Any, apart: bool) -> None:
    """Inline intermediate arrays. Cheap values, and values with a single reader, are computed in their readers.
    `apart`: keep an array for each costly value read by a sum, such as a padded image."""
    for block in _blocks(schedule):
        readers, cheap = schedule.get_consumers(block), is_cheap(schedule.get(block))
        kept = apart and not cheap and any(is_sum(schedule, reader) for reader in readers)
        if not kept and (len(readers) == 1 or (readers and cheap)):
            if not _try(schedule.compute_inline, block):
                _try(schedule.reverse_compute_inline, block)
        elif not readers:
            _try(schedule.reverse_compute_inline, block)


def name_of(schedule: Any) -> str:
    """The kernel's name for people, after its first sum or first block."""
    names = [schedule.get(block).name_hint for block in sums_of(schedule) or _blocks(schedule)]
    return names[0] if names else ISLAND


def sums_of(schedule: Any) -> list[Any]:
    """The reduction blocks (sums or maxima) in order."""
    return [block for block in _blocks(schedule) if is_sum(schedule, block)]


def is_sum(schedule: Any, block: Any) -> bool:
    return _REDUCTION in _kinds(schedule, block)


def loops_of(schedule: Any, block: Any) -> tuple[list[Any], list[Any]] | None:
    """The loops around a sum, and the loops over its terms. None for anything but a plain nest."""
    loops, kinds = list(schedule.get_loops(block)), _kinds(schedule, block)
    first = kinds.index(_REDUCTION)
    return (loops[:first], loops[first:]) if len(loops) == len(kinds) else None


def extents(schedule: Any, loops: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(schedule.get(loop).extent) for loop in loops)


def _kinds(schedule: Any, block: Any) -> list[int]:
    return [int(axis.iter_type) for axis in schedule.get(block).iter_vars]


def _blocks(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root", ISLAND)))


def _place(schedule: Any, block: Any, number: int, arrangement: LoopArrangement) -> None:
    """Arrange the loops of a sum: initialisation before the loops over terms; a single reader follows."""
    loops = loops_of(schedule, block)
    if loops is None:
        return
    around, over = loops
    nest = arrangement.nest(number, extents(schedule, around), extents(schedule, over))
    readers = schedule.get_consumers(block)
    outside, terms = _nested(schedule, around, over, nest)
    moved = outside and len(readers) == 1 and _try(schedule.reverse_compute_at, readers[0], outside[-1])
    begun = _begin(schedule, block, terms[0])
    if prod(nest.inside) > 1:
        for other in [*begun, *(readers if moved else [])]:
            longest = max(nest.inside)
            for loop in schedule.get_loops(other)[len(outside) :]:
                if int(schedule.get(loop).extent) <= longest and int(schedule.get(loop).kind) == 0:
                    _try(schedule.unroll, loop)


def _begin(schedule: Any, block: Any, loop: Any) -> list[Any]:
    """Move a sum's initialisation to a block before `loop`. Returns the new block; empty if TVM cannot separate it."""
    try:
        return [schedule.decompose_reduction(block, loop)]
    except s_tir.ScheduleError:
        return []


def _nested(schedule: Any, around: Sequence[Any], over: Sequence[Any], nest: Nest) -> tuple[list[Any], list[Any]]:
    """Split and reorder the loops of a sum. The turns of `nest` become innermost and are unrolled. Returns the outer
    loops around the sum, and the loops inside them."""
    outside, inside = _split(schedule, around, nest.inside)
    terms, written_out = _split(schedule, over, nest.terms)
    innermost = [*written_out, *inside]
    if innermost:
        schedule.reorder(*outside, *terms, *innermost)
        for loop in innermost:
            schedule.unroll(loop)
    return outside, [*terms, *innermost]


def _split(schedule: Any, loops: Sequence[Any], factors: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """Split loops by `factors`. Returns the outer loops, and the inner loops of `factor` turns."""
    outer, inner = list(loops), []
    for place, factor in enumerate(factors):
        if factor > 1:
            outer[place], turns = schedule.split(loops[place], [None, factor])
            inner.append(turns)
    return outer, inner


def _try(primitive: Any, *arguments: Any) -> bool:
    """True if the primitive applies. Index expressions that TVM cannot solve are a ValueError."""
    try:
        primitive(*arguments)
    except (s_tir.ScheduleError, ValueError):
        return False
    return True


def is_cheap(block: Any) -> bool:
    """True for a block without calls and divisions."""
    costly: list[Any] = []

    def note(node: Any) -> None:
        costly.append(node)

    tvm_ffi.structural_walk(block.body, ((tvm.ir.Call, tirx.Div), note))
    return not costly
