"""Rows of C code: a loop of the code computes a row of the output in each step. Part of the steps is a tile.

The importer decides from TIR, and each template states, which loop that is and what its steps read (`TvmCode.rows`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

from npukit.errors import NpukitError
from npukit.net.attributes import Pair, RowReads, Run, TvmCode
from npukit.net.box import Box
from npukit.net.c_code.function import Words
from npukit.net.net import Net, Op

Shape = tuple[int, ...]
Places = tuple[Pair, ...]
"""The span read by each position of an axis."""

_LOOP = re.compile(r"for \((int(?:32|64)_t) (\w+) = (?:\(int64_t\))?0; \2 < (?:\(int64_t\))?(\d+); \+\+\2\) \{")
_USED = re.compile(r"([A-Za-z_]\w*)\[")
WHOLE_OUTPUT = "output"


@dataclass(frozen=True)
class Rows:
    """A loop, or two nested loops, over the first long axes of the output. `axes`: the first long axis of each array.
    `spans`: what the positions of the output's axes read of an array along its axes from `axes` on; an array without
    spans is read as a whole. `moves`: those of `RowReads`."""

    loop: int
    shapes: Mapping[str, Shape]
    axes: Mapping[str, int]
    spans: Mapping[str, tuple[Places, ...]]
    moves: Mapping[str, tuple[int, ...]]

    @property
    def axis(self) -> int:
        return self.axes[WHOLE_OUTPUT]

    @property
    def cut(self) -> tuple[int, ...]:
        """The axes of the output along which tiles can be cut."""
        return tuple(range(self.axis, self.axis + len(self.spans[WHOLE_OUTPUT])))

    def turns(self, output: Box) -> list[Pair]:
        """The range of each loop for a box of the output."""
        return [(output.start[axis], output.stop[axis]) for axis in self.cut]

    def box(self, name: str, output: Box) -> Box:
        """The box of an array needed for a box of the output."""
        whole = Box.whole(self.shapes[name])
        starts, stops = list(whole.start), list(whole.stop)
        of_axes = zip(self.spans.get(name, ()), self.turns(output), strict=False)
        for axis, (places, (first, stop)) in enumerate(of_axes, self.axes.get(name, 0)):
            starts[axis] = min(low for low, _ in places[first:stop])
            stops[axis] = max(high for _, high in places[first:stop])
        return Box(tuple(starts), tuple(stops))

    def begin(self, name: str, output: Box) -> int:
        """The first element of an array needed for a box of the output."""
        shape, box = self.shapes[name], self.box(name, output)
        return sum(start * prod(shape[axis + 1 :]) for axis, start in enumerate(box.start))

    def along(self, name: str, axis: int) -> tuple[int, Places] | None:
        """The axis of the output followed by an axis of an array, and the span read by each position."""
        place = axis - self.axes.get(name, 0)
        spans = self.spans.get(name, ())
        return (self.axis + place, spans[place]) if 0 <= place < len(spans) else None

    def allow(self, tile: Box) -> bool:
        """True if a box of the output is whole rows, or part of one row."""
        return all(
            tile.shape[axis] == 1 or tile.shape[axis + 1] == self.shapes[WHOLE_OUTPUT][axis + 1]
            for axis in self.cut[:-1]
        )


def rows_of(net: Net, op: Op) -> Rows | None:
    """The rows of an op as C; None if the output cannot be divided."""
    attributes = op.attributes
    if not isinstance(attributes, TvmCode) or not attributes.rows:
        return None
    shapes = tuple(net.tensor(name).shape for name in (op.output, *op.inputs))
    return _rows(attributes.loop, attributes.rows, shapes, tuple(map(op.inputs.index, op.inputs)))


@lru_cache(maxsize=1024)
def _rows(loop: int, reads: tuple[RowReads, ...], shapes: tuple[Shape, ...], firsts: tuple[int, ...]) -> Rows:
    """The rows of code. Inputs beyond `reads` are read as a whole. `firsts`: the first place of each input's tensor."""
    names = [WHOLE_OUTPUT, *(f"p{place}" for place in range(len(shapes) - 1))]
    axes = {name: axis for name, shape in zip(names, shapes, strict=True) if (axis := long_axis(shape)) is not None}
    told = dict(zip(names, reads, strict=False))
    spans = {name: tuple(map(_places, each.spans)) for name, each in told.items() if each.spans}
    moves = {name: each.moves for name, each in told.items()}
    for first in {first for first in firsts if firsts.count(first) > 1}:
        _unite(spans, [f"p{place}" for place, tensor in enumerate(firsts) if tensor == first])
    return Rows(loop, dict(zip(names, shapes, strict=True)), axes, spans, moves)


def _unite(spans: dict[str, tuple[Places, ...]], names: Sequence[str]) -> None:
    """Give arrays of the same tensor, which share a part in memory, spans from the lowest to the highest position."""
    of_axes = list(zip(*(spans.pop(name, ()) for name in names), strict=False))
    united = tuple(
        tuple((min(low for low, _ in each), max(high for _, high in each)) for each in zip(*places, strict=True))
        for places in of_axes
    )
    spans.update(dict.fromkeys(names, united) if united else {})


def long_axis(shape: Sequence[int]) -> int | None:
    """The first axis of more than one position."""
    return next((axis for axis, size in enumerate(shape) if size > 1), None)


def _places(runs: Sequence[Run]) -> Places:
    return tuple((low + move * step, high + move * step) for steps, low, high, move in runs for step in range(steps))


def runs_of(places: Sequence[Pair]) -> tuple[Run, ...]:
    """Spans as runs: within a run both ends move on by the same number with each step."""
    runs: list[Run] = []
    for low, high in places:
        steps, first, last, move = runs[-1] if runs else (0, 0, 0, 0)
        if steps == 1 and high - low == last - first:
            runs[-1] = 2, first, last, low - first
        elif steps and (low, high) == (first + steps * move, last + steps * move):
            runs[-1] = steps + 1, first, last, move
        else:
            runs.append((1, low, high, 0))
    return tuple(runs)


Window = tuple[int, int, int]
"""Step, size and start: step v of a loop reads `size` elements from v * step + start on."""
EACH: Window = (1, 1, 0)
"""The window of elementwise code."""


class Steps(NamedTuple):
    """Statement of a template about its loop over rows.

    `row`: elements of the output in each step; 0 for code without such a loop. `windows`: what a step reads of p0, p1,
    ...; None for all. `alike`: each step does what the step before does, further on. `loop`: the number of loop headers
    before the loop's. `cycles`: of a step, or of the whole code without such a loop.
    """

    row: int = 1
    windows: tuple[Window | None, ...] = ()
    alike: bool = True
    loop: int = 0
    cycles: float = 0


LOOP_CYCLES = 3
"""Cycles of the beginning of a loop, and of each turn."""
NO_STEPS = Steps(0)
"""The statement of C without a loop over rows."""


def stated_cycles(steps: Steps, output: Shape) -> int:
    """The predicted cycles of a template's code."""
    return round(LOOP_CYCLES + prod(output) // steps.row * steps.cycles if steps.row else steps.cycles)


def stated_rows(steps: Steps, output: Shape, inputs: Sequence[Shape]) -> tuple[RowReads, ...]:
    """The reads of a template's steps. Empty if the output has other rows."""
    axis = long_axis(output)
    if axis is None or prod(output[axis + 1 :]) != steps.row:
        return ()
    own = RowReads((((output[axis], 0, 1, 1),),), (steps.row if steps.alike else 0,))
    return (own, *(_read(*each, output[axis]) for each in zip(steps.windows, inputs, strict=False)))


def _read(window: Window | None, shape: Shape, count: int) -> RowReads:
    """The rows of an array with the elements of a window in each of `count` steps."""
    axis = long_axis(shape)
    if window is None or axis is None:
        return RowReads((), (0,))
    (step, size, start), row, last = window, prod(shape[axis + 1 :]), shape[axis] - 1
    firsts = range(start, start + count * step, step) if step else [start] * count
    ends = [[min(max(at // row, 0), last) for at in (first, first + size - 1)] for first in firsts]
    spans = [(low, high + 1) for low, high in ends]
    return RowReads(() if spans == [(0, last + 1)] * count else (runs_of(spans),), (step,))


def check_rows(net: Net, op: Op, attributes: TvmCode) -> None:
    """Raise an error if rows, perhaps from a file, do not match the shapes and the loops of the code."""
    if not attributes.rows:
        return
    shapes = [net.tensor(name).shape for name in (op.output, *op.inputs)]
    axes, loops = list(map(long_axis, shapes)), len(attributes.rows[0].spans)
    sizes = shapes[0][axes[0] or 0 :][:loops]
    counts = [header[3] for header in _headers(attributes.code, attributes.loop, loops)]
    known = loops and attributes.rows[0].spans == tuple(((size, 0, 1, 1),) for size in sizes)
    read = zip(attributes.rows, axes, shapes, strict=False)
    fits = len(attributes.rows) <= len(shapes) and all(_fits(*each, sizes) for each in read)
    if not known or not fits or counts != list(map(str, sizes)):
        raise NpukitError("its rows are not those of its output, its inputs and its loops")


def _headers(code: str, loop: int, count: int) -> list[re.Match[str]]:
    """The headers of the loops over rows."""
    return list(_LOOP.finditer(code))[loop : loop + count]


def _fits(read: RowReads, axis: int | None, shape: Shape, positions: Sequence[int]) -> bool:
    """True if an array contains its spans, and each position of the output along the axes has a span."""
    spans, moves = read
    sizes = shape[axis:][: len(spans)] if axis is not None else ()
    fits = len(moves) == len(positions) and len(sizes) == len(spans) <= len(positions)
    return fits and all(
        sum(steps for steps, *_ in runs) == count
        and all(steps > 0 and _lies(low, high, move * (steps - 1), size) for steps, low, high, move in runs)
        for runs, size, count in zip(spans, sizes, positions, strict=False)
    )


def _lies(low: int, high: int, moved: int, size: int) -> bool:
    return min(low, low + moved) >= 0 and max(high, high + moved) <= size and low < high


def part_of(code: str, rows: Rows, output: Box) -> str:
    """The code for a box of the output. Each array begins with the first element of its box. Loops count from 0 if each
    step does what the step before does further on: parts of equal size have equal code."""
    headers = _headers(code, rows.loop, len(rows.cut))
    turns, body = rows.turns(output), code[headers[-1].end() :]
    begins = {name: rows.begin(name, output) for name in rows.spans}
    if _is_alike(rows, turns, begins):
        turns = [(0, stop - first) for first, stop in turns]
    else:
        body = _moved(body, begins)
    made, done = "", 0
    for loop, (first, stop) in zip(headers, turns, strict=True):
        made += f"{code[done : loop.start()]}for ({loop[1]} {loop[2]} = {first}; {loop[2]} < {stop}; ++{loop[2]}) {{"
        done = loop.end()
    return made + body


def _is_alike(rows: Rows, turns: Sequence[Pair], begins: Mapping[str, int]) -> bool:
    """True if the subscripts of each array move as far with the loops as the array begins later."""
    firsts = [first for first, _ in turns]
    return all(
        sum(move * first for move, first in zip(moves, firsts, strict=True)) == begins.get(name, 0)
        for name, moves in rows.moves.items()
    )


def _moved(text: str, begins: Mapping[str, int]) -> str:
    """The text with subscripts counted from the new beginnings."""
    made, done = "", 0
    for name, begin, end in subscripts(text):
        if begins.get(name) and begin >= done:
            made += f"{text[done:begin]}({_moved(text[begin:end], begins)}) - {begins[name]}"
            done = end
    return made + text[done:]


def subscripts(text: str) -> Iterator[tuple[str, int, int]]:
    """The name of each subscripted array, and the start and end of the subscript."""
    for found in _USED.finditer(text):
        yield found[1], found.end(), _closing(text, found.end())


def _closing(text: str, begin: int) -> int:
    depth = 1
    for place in range(begin, len(text)):
        depth += (text[place] == "[") - (text[place] == "]")
        if not depth:
            return place
    return len(text)


_OF_BOX = {"anchors": 157, "centre": 53, "corners": 33}
"""Cycles of a box without scores, by the form of boxes."""


def detections_steps(words: Words, form: str) -> Steps:
    """The cycles of the code with these words."""
    boxes, columns, first, passes, most = (
        int(words[name]) for name in ("boxes", "columns", "first", "passes", "most_of_a_pass")
    )
    cycles = 85 + 35 * int(words["max_detections"]) + boxes * (_OF_BOX[form] + 9 * (columns - first))
    return Steps(0, cycles=cycles + passes * (11 + most * (67 + 31 * boxes)))
