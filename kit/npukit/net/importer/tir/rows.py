"""Rows of TVM's loops: the loop that computes a row of the output in each step, and the part of each input it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.sym import detect_linear_equation

from npukit.net.c_code.rows import Shape, long_axis, runs_of
from npukit.net.ops import RowReads, Run
from npukit.net.ops.fields import boxed_axes

ir: Any = tirx
_VARIABLE: Any = tvm.ir.Var
_WORD = 1 << 31
FEW, MOST_ROWS = 32, 1 << 14
"""Positions of the first axis that are so few that PEs may share each; the most rows of two axes."""

Interval = tuple[np.ndarray, np.ndarray]
"""The least and the largest value in each step of a loop."""


@dataclass(frozen=True)
class _Nest:
    """Loops, each of which is the whole body of the loop before it. `fresh`: the number of loops around the outermost
    local array. No step of these loops reads values of an earlier step."""

    loops: tuple[Any, ...]
    fresh: int

    @property
    def counts(self) -> list[int]:
        return [int(loop.extent) for loop in self.loops]


def nest_of(function: Any) -> _Nest:
    """The loops of a function before TVM moves local arrays out of them."""
    loops, fresh, body = [], -1, function.body
    rest: list[Any]
    while body is not None:
        parts = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
        fresh = len(loops) if fresh < 0 and any(isinstance(each, tirx.AllocBuffer) for each in parts) else fresh
        rest = [each for each in parts if not isinstance(each, tirx.AllocBuffer | tirx.DeclBuffer)]
        plain = len(rest) == 1 and isinstance(rest[0], tirx.For) and _number(rest[0].min) == 0
        body = rest[0].body if plain and _number(rest[0].extent) else None
        loops += [rest[0]] if body is not None else []
    return _Nest(tuple(loops), len(loops) if fresh < 0 else fresh)


def _number(expression: Any) -> int | None:
    return int(expression.value) if isinstance(expression, tirx.IntImm) else None


def rows_of_loops(function: Any, fresh: _Nest) -> tuple[int, tuple[RowReads, ...]]:
    """The number of loops around the loop over rows, and the reads of its steps. No reads if there is no such loop.
    `fresh`: the function's nest before TVM moved its local arrays."""
    *inputs, output = ([int(size) for size in each.ty.shape] for each in function.params)
    shapes = [tuple(shape) for shape in (output, *inputs)]
    nest, axis = _Nest(nest_of(function).loops[: fresh.fresh], fresh.fresh), long_axis(shapes[0])
    for depth, count in enumerate(nest.counts):
        if axis is None or nest.counts[: depth + 1] != fresh.counts[: depth + 1]:
            break
        rows = _Rows(function, nest, depth, shapes, axis)
        if count == shapes[0][axis] and (reads := rows.reads()):
            return depth, reads
    return 0, ()


@dataclass(frozen=True)
class _Rows:
    """A loop that may be one over rows. `axis`: the first long axis of the output, the first of the `shapes`."""

    function: Any
    nest: _Nest
    depth: int
    shapes: Sequence[Shape]
    axis: int

    def reads(self) -> tuple[RowReads, ...]:
        """The reads of the output and the inputs; empty if a step computes anything but its own row."""
        output, found = self.shapes[0], self._bounds(1)
        if found is None:
            return ()
        spans = [self._of_rows(*each) for each in zip(self.shapes, found, strict=True)]
        both = self._bounds(2) if self._may_be_two() else None
        if both:
            pairs = (_of_pairs(*each, output) for each in zip(self.shapes, both, strict=True))
            spans = [pair or one for pair, one in zip(pairs, spans, strict=True)]
        counts = output[self.axis :][: 2 if both else 1]
        spans[0] = tuple(((count, 0, 1, 1),) for count in counts)
        return tuple(map(RowReads, spans, self._moves(len(counts))))

    def _may_be_two(self) -> bool:
        """True if the next loop runs along the next axis, along which tiles can be cut too, and the rows are few."""
        output, counts = self.shapes[0], self.nest.counts
        rows, inner = counts[self.depth], next(iter(counts[self.depth + 1 :]), 1)
        is_next = _has_next(output) and output[self.axis + 1] == inner
        return is_next and rows <= FEW and rows * inner <= MOST_ROWS

    def _variables(self, count: int) -> list[Any]:
        return [loop.loop_var for loop in self.nest.loops[self.depth : self.depth + count]]

    def _bounds(self, count: int) -> list[Interval | None] | None:
        """The bounds of each array's subscripts in each step of `count` loops, or None for an unread array. None if a
        step reads or writes anything of the output but its own row."""
        turns = self.nest.counts[self.depth : self.depth + count]
        grids = np.indices(turns).reshape(count, -1)
        known: dict[Any, Interval] = {
            variable: (grid, grid) for variable, grid in zip(self._variables(count), grids, strict=True)
        }
        for loop in nodes_of(self.function.body, tirx.For):
            first, turns = _number(loop.min) or 0, _number(loop.extent) or _WORD
            known.setdefault(loop.loop_var, _constant(first, first + turns - 1, grids[0]))
        for bind in nodes_of(self.function.body, tirx.Bind):
            known[bind.var] = bounds(bind.value, known, grids[0])
        found: list[Interval | None] = [None] * len(self.shapes)
        for array, index in self._uses():
            low, high = bounds(index, known, grids[0])
            before = found[array] or (low, high)
            found[array] = np.minimum(before[0], low), np.maximum(before[1], high)
        row = prod(self.shapes[0][self.axis + count :])
        first = row * np.arange(len(grids[0]))
        own = found[0] is not None and np.all(found[0][0] >= first) and np.all(found[0][1] < first + row)
        return found if own else None

    def _uses(self) -> Iterator[tuple[int, Any]]:
        """The number of the array and the subscript of each element read or written: 0 for the output."""
        for access in nodes_of(self.function.body, tvm.ir.TensorLoad, tirx.BufferStore):
            if (array := self._arrays.get(_array(access))) is not None:
                yield array, access.indices[0]

    @cached_property
    def _arrays(self) -> dict[Any, int]:
        """The number of the output and of each input, by the names in the function."""
        *inputs, output = self.function.params
        known = {each: place for place, each in enumerate((output, *inputs))}
        views = nodes_of(self.function.body, tirx.DeclBuffer)
        return known | {each.buffer: known[each.data.args[0]] for each in views if each.data.args[0] in known}

    def _of_rows(self, shape: Shape, found: Interval | None) -> tuple[tuple[Run, ...], ...]:
        """The rows read along the first long axis of an array; empty if a step may read all of them."""
        axis = long_axis(shape)
        places = _places(found, prod(shape[(axis or 0) + 1 :]), shape[axis or 0]) if axis is not None else None
        return (runs_of(places.tolist()),) if places is not None else ()

    def _moves(self, count: int) -> Iterator[tuple[int, ...]]:
        """Movement of each array's subscripts with a step of each loop (`RowReads.moves`)."""
        variables = self._variables(count)
        alike = [not each for each in self._used_elsewhere(variables)]
        moves: list[dict[int, int]] = [{} for _ in self.shapes]
        for (array, index), (loop, variable) in product(self._uses(), enumerate(variables)):
            factor = next((_number(each) for each in detect_linear_equation(index, [variable])), None)
            alike[loop] = alike[loop] and factor is not None and moves[array].setdefault(loop, factor) == factor
        output, *inputs = moves
        yield tuple(output.get(loop, 0) * alike[loop] for loop in range(count))
        yield from (tuple(each.get(loop, 0) for loop in range(count)) for each in inputs)

    def _used_elsewhere(self, variables: Sequence[Any]) -> list[bool]:
        """True for each variable that occurs outside of the subscripts of the output and the inputs."""
        arrays, zero = self._arrays, tirx.const(0, "int32")

        def plain(access: Any) -> Any:
            if _array(access) not in arrays:
                return access
            if isinstance(access, tirx.BufferStore):
                return tirx.BufferStore(access.buffer, access.value, [zero])
            return tirx.const(0, str(access.ty.dtype))

        body = self.nest.loops[self.depth + len(variables) - 1].body
        rest = tvm_ffi.structural_map(body, ((tvm.ir.TensorLoad, tirx.BufferStore), plain))
        used = nodes_of(rest, tvm.ir.Var)
        return [any(each.same_as(variable) for each in used) for variable in variables]


def _has_next(shape: Shape) -> bool:
    """True if a box can be smaller than the array along the axis after the first long one too."""
    axis = long_axis(shape)
    return axis is not None and axis + 1 in boxed_axes(shape) and shape[axis + 1] > 1


def _array(access: Any) -> Any:
    """The array of a load or a store."""
    return access.buffer if isinstance(access, tirx.BufferStore) else access.source


def nodes_of(body: Any, *kinds: Any) -> list[Any]:
    """The nodes of some kinds, in the order of the statements."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, (kinds, found.append))
    return found


def _places(found: Interval | None, row: int, rows: int) -> np.ndarray | None:
    """The span of rows read in each step. None if it may be all rows, or none."""
    if found is None:
        return None
    low, high = (np.clip(each // row, 0, rows - 1) for each in found)
    spans = np.stack([low, np.maximum(low, high) + 1], axis=1)
    return None if np.all(spans[:, 1] - spans[:, 0] == rows) else spans


def _of_pairs(shape: Shape, found: Interval | None, output: Shape) -> tuple[tuple[Run, ...], ...]:
    """The rows read of an array, and the places along the next axis. Empty unless each step reads a part of one row,
    the same part for all rows of the output, and the steps of a row together read a whole row."""
    axis, made = long_axis(shape), long_axis(output)
    if axis is None or made is None or not _has_next(shape):
        return ()
    rows, columns = shape[axis : axis + 2]
    places = _places(found, prod(shape[axis + 2 :]), rows * columns)
    if places is None:
        return ()
    spans = places.reshape(output[made], -1, 2)
    first, last = spans[..., 0] // columns, (spans[..., 1] - 1) // columns
    across = spans - first[..., None] * columns
    alike = np.all(first == last) and np.all(first == first[:, :1]) and np.all(across == across[:1])
    if not alike or across.min() > 0 or across.max() < columns:
        return ()
    return runs_of([(row, row + 1) for row in first[:, 0].tolist()]), runs_of(across[0].tolist())


def _constant(low: int, high: int, steps: np.ndarray) -> Interval:
    return np.full(len(steps), low), np.full(len(steps), high)


def bounds(expression: Any, known: Mapping[Any, Interval], steps: np.ndarray) -> Interval:
    """The bounds of a 32-bit integer expression in each step. Results beyond 32 bits may have any value."""
    low, high = _inner_bounds(expression, known, steps)
    return _constant(-_WORD, _WORD - 1, steps) if low.min() < -_WORD or high.max() >= _WORD else (low, high)


def _inner_bounds(expression: Any, known: Mapping[Any, Interval], steps: np.ndarray) -> Interval:
    if isinstance(expression, _VARIABLE) and expression in known:
        return known[expression]
    if isinstance(expression, tirx.IntImm):
        return _constant(int(expression.value), int(expression.value), steps)
    if isinstance(expression, ir.Cast) and "int" in str(expression.value.ty.dtype):
        return bounds(expression.value, known, steps)
    combine = next((each for kind, each in _COMBINED.items() if isinstance(expression, kind)), None)
    if combine is None:
        return _constant(-_WORD, _WORD - 1, steps)
    return combine(bounds(expression.a, known, steps), bounds(expression.b, known, steps))


def _product(left: Interval, right: Interval) -> Interval:
    corners = np.stack([a * b for a in left for b in right])
    return corners.min(axis=0), corners.max(axis=0)


def _quotient(left: Interval, right: Interval) -> Interval:
    """A quotient rounded down. Any value if the divisor is not one positive number."""
    known, by = (right[0] == right[1]) & (right[0] > 0), np.maximum(right[0], 1)
    return np.where(known, left[0] // by, -_WORD), np.where(known, left[1] // by, _WORD - 1)


def _rest(left: Interval, right: Interval) -> Interval:
    """The rest of a quotient rounded down."""
    (low, high), by = _quotient(left, right), right[0]
    least, most = np.minimum(right[0] + 1, 0), np.maximum(right[1] - 1, 0)
    return np.where(low == high, left[0] - low * by, least), np.where(low == high, left[1] - low * by, most)


_COMBINED: Mapping[Any, Callable[[Interval, Interval], Interval]] = {
    tirx.Add: lambda a, b: (a[0] + b[0], a[1] + b[1]),
    tirx.Sub: lambda a, b: (a[0] - b[1], a[1] - b[0]),
    tirx.Mul: _product,
    tirx.Min: lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    tirx.Max: lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    tirx.FloorDiv: _quotient,
    tirx.FloorMod: _rest,
}
