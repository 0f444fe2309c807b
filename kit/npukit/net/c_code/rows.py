"""C that TVM makes, divided by rows: a loop, alone in those around it, makes a row of the output in each step.

Each step must write its own row alone and begin with nothing that another one left. Then a part of the steps is a tile,
and what it reads of each input follows from the bounds of the subscripts (`net/c_code/intervals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

import numpy as np

from npukit.net.box import Box
from npukit.net.c_code.function import pointers
from npukit.net.c_code.intervals import Interval, any_word, bounds, number, slope
from npukit.net.net import Net, Op
from npukit.net.ops import Pair, TvmCode

Shape = tuple[int, ...]

_LOOP = re.compile(r"for \((int(?:32|64)_t) (\w+) = (?:\(int64_t\))?(\d+); \2 < (?:\(int64_t\))?(\d+); \+\+\2\) \{")
_LOCAL = re.compile(r"\w+ (\w+)\[\d+\];|\w+ \*(\w+) = \(\w+ \*\)\(void \*\)\(work \+ \d+\);")
"""An array of the function's own: on the stack, or in its workspace."""
_VALUE = re.compile(r"(int32|int64)_t (\w+) = (.*);")
_CHANGED = re.compile(r"^(\w+) [-+*/]?= ", re.M)
_USED = re.compile(r"([A-Za-z_]\w*)(\[)?")
WHOLE_OUTPUT = "output"
_MOST_ELEMENTS = 1 << 16
"""Elements of an array of the function's own that are counted, to see that a step begins all that it reads."""


@dataclass(frozen=True)
class ArrayUse:
    """An element of an array that the loop reads or writes."""

    name: str
    index: Interval | None
    written: bool
    text: str


@dataclass(frozen=True)
class _Begun:
    """The elements of an array that a step has written once `scope` ends: all from `low` to `high`."""

    low: int
    high: int
    text: str
    scope: Mapping[str, Interval | None]

    def has(self, use: ArrayUse, scopes: Sequence[Mapping[str, Interval | None]]) -> bool:
        """True if what is read has been written: the same element, or any behind the loops that write them."""
        if any(scope is self.scope for scope in scopes) and self.low < self.high:
            return use.text == self.text
        within = use.index is not None and use.index.low.min() >= self.low and use.index.high.max() <= self.high
        return bool(within)


@dataclass(frozen=True)
class Rows:
    """A `loop` of `count` steps, each of which makes a row along `axis` of the output.

    `places`: by parameter, the rows of an input or a constant from which and to which each step reads along `axes`; a
    parameter that is not there is read as a whole. `sizes`: elements of a row of each of them.
    """

    axis: int
    count: int
    places: Mapping[str, tuple[Pair, ...]]
    axes: Mapping[str, int]
    sizes: Mapping[str, int]
    loop: str = r"\w+"
    """The name of what it counts: else that of the first loop."""
    lengths: Mapping[str, int] = field(default_factory=dict)
    """The rows that one position of the first axis has, of the output and of what is read, if they are of two axes: a
    tile has all of them, or is of one such position."""
    inner: str = ""
    """The name of what counts them, in a loop that is all of the other."""

    @property
    def length(self) -> int:
        return self.lengths.get(WHOLE_OUTPUT, 1)

    def steps(self, output: Box) -> Pair:
        """The steps that make a box of the output."""
        first, stop = (corner[self.axis] * self.length for corner in (output.start, output.stop))
        if self.length == 1 or output.shape[self.axis + 1] == self.length:
            return first, stop
        return first + output.start[self.axis + 1], first + output.stop[self.axis + 1]

    def box(self, name: str, shape: Shape, output: Box) -> Box:
        """The box of a parameter that a box of the output is made of."""
        whole = Box.whole(shape)
        if name not in self.places:
            return whole
        first, stop = self.steps(output)
        read, axis, length = self.places[name][first:stop], self.axes[name], self.lengths.get(name, 1)
        low, high = min(low for low, _ in read), max(high for _, high in read)
        starts, stops = list(whole.start), list(whole.stop)
        starts[axis], stops[axis] = low // length, (high - 1) // length + 1
        if length > 1 and stops[axis] - starts[axis] == 1:
            starts[axis + 1], stops[axis + 1] = low % length, (high - 1) % length + 1
        return Box(tuple(starts), tuple(stops))

    def begin(self, name: str, box: Box) -> int:
        """The row that a box of a parameter begins with."""
        axis, length = self.axes[name], self.lengths.get(name, 1)
        return box.start[axis] * length + (box.start[axis + 1] if length > 1 else 0)

    def along(self, name: str, axis: int) -> tuple[int, tuple[Pair, ...]] | None:
        """The axis of the output that an axis of a parameter follows, and what of it each position of that reads."""
        if name not in self.places or axis not in (self.axes[name], self.axes[name] + (self.lengths.get(name, 1) > 1)):
            return None
        spans, length = np.array(self.places[name]).reshape(-1, self.length, 2), self.lengths.get(name, 1)
        if axis == self.axes[name]:
            low, high = spans[..., 0].min(axis=1) // length, (spans[..., 1].max(axis=1) - 1) // length + 1
            return self.axis, tuple(zip(low.tolist(), high.tolist(), strict=True))
        low, high = spans[0, :, 0] % length, (spans[0, :, 1] - 1) % length + 1
        return self.axis + 1, tuple(zip(low.tolist(), high.tolist(), strict=True))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what the loops count."""
        return (self.loop, self.inner) if self.inner else (self.loop,)

    def turns(self, first: int, stop: int) -> list[Pair]:
        """The range that each loop counts for these steps."""
        if not self.inner:
            return [(first, stop)]
        whole = (first // self.length, (stop - 1) // self.length + 1)
        part = first % self.length, (stop - 1) % self.length + 1
        return [whole, part if whole[1] - whole[0] == 1 else (0, self.length)]

    def allow(self, tile: Box) -> bool:
        """True if the rows of a box of the output follow each other, so that it may be a tile."""
        return self.length == 1 or tile.shape[self.axis] == 1 or tile.shape[self.axis + 1] == self.length


def rows_of(net: Net, op: Op) -> Rows | None:
    """The rows of an op as C; None if it makes its output in other ways."""
    attributes = op.attributes
    if isinstance(attributes, TvmCode) and any(attributes.windows):
        return _of_windows(attributes.windows, net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape)
    if not isinstance(attributes, TvmCode) or (attributes.given and not attributes.by_rows):
        return None
    shapes = tuple((each.name, net.tensor(each.tensor).shape) for each in pointers(net, op) if each.tensor)
    return rows_of_code(attributes.code, shapes)


def _of_windows(windows: Pair, given: Shape, output: Shape) -> Rows | None:
    """The rows of C that says which elements of its first input each of them is made of."""
    (step, size), axis, source = windows, _long_axis(output), _long_axis(given)
    if axis is None or source is None:
        return None
    places = tuple((row * step, row * step + size) for row in range(output[axis]))
    axes = {"p0": source, WHOLE_OUTPUT: axis}
    return Rows(axis, output[axis], {"p0": places}, axes, {"p0": _row(given), WHOLE_OUTPUT: _row(output)})


@lru_cache(maxsize=1024)
def rows_of_code(code: str, shapes: tuple[tuple[str, Shape], ...]) -> Rows | None:
    """The rows of C that TVM has made, by the shapes of its parameters; None if it makes its output in other ways."""
    axis = _long_axis(dict(shapes)[WHOLE_OUTPUT])
    loops = [] if axis is None else list(_loops(code))
    found = (_rows_of_loop(loop, shapes, axis) for loop in loops if axis is not None)
    rows = next((rows for rows in found if rows), None)
    return rows and (_of_two_axes(loops, rows, shapes) or rows)


def _rows_of_loop(loop: _Loop, shapes: tuple[tuple[str, Shape], ...], axis: int) -> Rows | None:
    known = dict(shapes)
    uses = loop.uses() if known[WHOLE_OUTPUT][axis] == loop.count else None
    if uses is None or not _alone(uses, _row(known[WHOLE_OUTPUT]), loop.count):
        return None
    axes = {name: found for name, shape in shapes if (found := _long_axis(shape)) is not None}
    sizes = {name: _row(known[name]) for name in axes}
    read = {name: _places(uses, name, sizes[name], known[name][axes[name]]) for name in axes if name != WHOLE_OUTPUT}
    places = {name: found for name, found in read.items() if found is not None}
    return Rows(axis, loop.count, places, axes, sizes, loop.name)


FEW, MOST_ROWS = 32, 1 << 12
"""Positions of the first axis that are so few that PEs may want to share each, and rows of two axes that are told."""


def _of_two_axes(loops: Sequence[_Loop], rows: Rows, shapes: tuple[tuple[str, Shape], ...]) -> Rows | None:
    """The rows of the first two axes of an image; None if they are not those of a loop and the one in it."""
    known, at = dict(shapes), next(place for place, loop in enumerate(loops) if loop.name == rows.loop)
    output, inner = known[WHOLE_OUTPUT], loops[at + 1] if at + 1 < len(loops) else None
    if inner is None or len(output) != 4 or rows.axis != 1 or inner.count != output[2] or inner.count == 1:
        return None
    if rows.count > FEW or rows.count * inner.count > MOST_ROWS:
        return None
    count = rows.count * inner.count
    uses, row = replace(inner, turns=rows.count, outside=rows.loop).uses(), output[3]
    if uses is None or not _alone(uses, row, count):
        return None
    places, sizes, lengths = dict[str, tuple[Pair, ...]](), {WHOLE_OUTPUT: row}, {WHOLE_OUTPUT: inner.count}
    for name, read in rows.places.items():
        both = _of_pairs(uses, name, known[name], rows) if len(known[name]) == 4 and rows.axes[name] == 1 else None
        if both:
            places[name], sizes[name], lengths[name] = both, known[name][3], known[name][2]
        else:
            places[name], sizes[name] = tuple(span for span in read for _ in range(inner.count)), rows.sizes[name]
    return replace(rows, count=count, places=places, sizes=sizes, lengths=lengths, inner=inner.name)


def _of_pairs(uses: Sequence[ArrayUse], name: str, shape: Shape, rows: Rows) -> tuple[Pair, ...] | None:
    """The rows that steps read along two axes, if each reads of one position of the first, the same part at each, and
    all of those together a whole one."""
    length = shape[2]
    places = _places(uses, name, shape[3], shape[1] * length) if length > 1 else None
    if places is None:
        return None
    spans = np.array(places).reshape(rows.count, -1, 2)
    first, last = spans[..., 0] // length, (spans[..., 1] - 1) // length
    across = spans - first[..., None] * length
    alike = np.all(first == last) and np.all(first == first[:, :1]) and np.all(across == across[:1])
    return places if alike and across.min() == 0 and across.max() == length else None


def part_of(code: str, rows: Rows, first: int, stop: int, begins: Mapping[str, int]) -> str:
    """The code of the steps from `first` to before `stop`, where arrays begin with the rows `begins`.

    It counts from 0 where each step does what the one before does a row on: parts of one size are one code.
    """
    headers = [next(each for each in _LOOP.finditer(code) if re.fullmatch(name, each[2])) for name in rows.names]
    offsets = {name: row * rows.sizes[name] for name, row in begins.items() if row}
    spans, body = rows.turns(first, stop), code[headers[-1].end() :]
    if _moves_alike(body, {each[2]: begin for each, (begin, _) in zip(headers, spans, strict=True)}, offsets):
        spans = [(0, end - begin) for begin, end in spans]
    else:
        body = _moved(body, offsets)
    made, done = "", 0
    for loop, (begin, end) in zip(headers, spans, strict=True):
        made += f"{code[done : loop.start()]}for ({loop[1]} {loop[2]} = {begin}; {loop[2]} < {end}; ++{loop[2]}) {{"
        done = loop.end()
    return made + body


def _moves_alike(body: str, moves: Mapping[str, int], offsets: Mapping[str, int]) -> bool:
    """True if what loops count says in subscripts alone where they are: as far as they move do arrays begin later."""
    slopes = dict(moves)
    for line in map(str.strip, body.splitlines()):
        value, rest, done = _VALUE.fullmatch(line), "", 0
        if value and (moved := slope(value[3], slopes)) is not None:
            slopes[value[2]] = moved
            continue
        for array, begin, end in subscripts(line):
            moved = slope(line[begin:end], slopes)
            if moved is None or moved != offsets.get(array, 0):
                return False
            rest, done = rest + line[done:begin], end
        if any(word in slopes and (slopes[word] or word in moves) for word, _ in _USED.findall(rest + line[done:])):
            return False
    return True


def _moved(text: str, offsets: Mapping[str, int]) -> str:
    """The text with subscripts that count from elsewhere."""
    made, done = "", 0
    for name, begin, end in subscripts(text):
        if name in offsets and begin >= done:
            inner = _moved(text[begin:end], offsets)
            made += f"{text[done:begin]}({inner}) - {offsets[name]}"
            done = end
    return made + text[done:]


def subscripts(text: str) -> Iterator[tuple[str, int, int]]:
    """The name of each array that is read or written, and where its subscript begins and ends."""
    for found in _USED.finditer(text):
        if found[2]:
            yield found[1], found.end(), _closing(text, found.end())


def _closing(text: str, begin: int) -> int:
    depth = 1
    for place in range(begin, len(text)):
        depth += (text[place] == "[") - (text[place] == "]")
        if not depth:
            return place
    return len(text)


@dataclass
class _Loop:
    """A loop of some code, those around it, and what is declared before them."""

    before: str
    around: Mapping[str, int]
    name: str
    count: int
    body: str
    turns: int = 1
    """The times that it is begun, if the loop `outside` it is one with it."""
    outside: str = ""
    _scopes: list[dict[str, Interval | None]] = field(default_factory=list)
    _inner: list[str] = field(default_factory=list)
    """The name that each block within a step counts by, if it is a loop."""

    @property
    def steps(self) -> int:
        return self.turns * self.count

    def uses(self) -> list[ArrayUse] | None:
        """The elements that the steps read and write; None if a step may read what another one left."""
        steps = np.arange(self.steps)
        around = {name: Interval(0 * steps, 0 * steps + count - 1) for name, count in self.around.items()}
        turn, place = np.divmod(steps, self.count)
        outside = {self.outside: Interval(turn, turn)} if self.outside else {}
        self._scopes, self._inner = [{**around, **outside, self.name: Interval(place, place)}], []
        own = {name for pair in _LOCAL.findall(self.before) for name in pair if name}
        changed, found, blocks = (
            set(_CHANGED.findall(re.sub(r"^ +", "", self.body, flags=re.M))),
            list[ArrayUse](),
            [""],
        )
        begun: dict[str, _Begun] = {}
        for line in map(str.strip, self.body.splitlines()):
            for use in self._of_line(line):
                if use.name in own and not self._begins(use, begun, line, blocks):
                    return None
                found.append(use)
            self._follow(line, blocks, changed)
        return found

    def _begins(self, use: ArrayUse, begun: dict[str, _Begun], line: str, blocks: Sequence[str]) -> bool:
        """True if what is used of an array of the function's own is this step's: it writes that, or has written it."""
        if use.name in begun:
            return use.written or begun[use.name].has(use, self._scopes)
        written = self._written(use) if use.written and "if" not in blocks and line.count(use.name) == 1 else None
        if written is None:
            return False
        counted = (place for place, name in enumerate(self._inner, 1) if re.search(rf"\b{name or '$'}\b", use.text))
        begun[use.name] = _Begun(*written, use.text, self._scopes[next(counted, 0)])
        return True

    def _written(self, use: ArrayUse) -> Pair | None:
        """The first and the last element that the loops in a step write at this place, if they write all between."""
        counts = {name: int(each.high[0]) + 1 for name, each in self._inner_loops()}
        if prod(counts.values()) > _MOST_ELEMENTS:
            return None
        grids = [each.ravel() for each in np.indices(tuple(counts.values()))] if counts else []
        known = {name: Interval(grid, grid) for name, grid in zip(counts, grids, strict=True)}
        index = bounds(use.text, known, prod(counts.values()))
        places = np.unique(index.low) if index is not None else np.array([0, 2])
        low, high = int(places[0]), int(places[-1])
        return (low, high) if len(places) == high - low + 1 else None

    def _inner_loops(self) -> Iterator[tuple[str, Interval]]:
        """The loops of a step that are open, from 0 on each."""
        for scope, inner in zip(self._scopes[1:], self._inner, strict=True):
            each = scope[inner] if inner else None
            if inner and each is not None and not each.low.any():
                yield inner, each

    def _follow(self, line: str, blocks: list[str], changed: set[str]) -> None:
        """Scopes and what is declared in them."""
        if line.startswith("}"):
            self._scopes.pop()
            self._inner.pop()
            blocks.pop()
        if line.endswith("{"):
            inner = _LOOP.fullmatch(line)
            blocks.append("for" if inner else "if")
            self._scopes.append({})
            self._inner.append(inner[2] if inner else "")
            if inner:
                low, high = (number(int(inner[place]) - less, self.steps) for place, less in ((3, 0), (4, 1)))
                self._scopes[-1][inner[2]] = Interval(low.low, high.high)
        if value := _VALUE.fullmatch(line):
            whatever = any_word(self.steps) if value[1] == "int32" else None
            self._scopes[-1][value[2]] = None if value[2] in changed else self._bounds(value[3]) or whatever

    def _bounds(self, text: str) -> Interval | None:
        known: dict[str, Interval] = {}
        for scope in self._scopes:
            known |= {name: each for name, each in scope.items() if each is not None}
            for name, each in scope.items():
                if each is None:
                    known.pop(name, None)
        return bounds(text, known, self.steps)

    def _of_line(self, line: str) -> Iterator[ArrayUse]:
        """The uses in a line, in the order in which they happen: what is written comes last, unless nothing is read."""
        used = [(name, line[begin:end], line[end + 1 :]) for name, begin, end in subscripts(line)]
        uses = [ArrayUse(name, self._bounds(index), _is_written(rest), index) for name, index, rest in used]
        yield from sorted(uses, key=lambda use: use.written)


def _is_written(rest: str) -> bool:
    return bool(re.match(r" = ", rest))


def _loops(code: str) -> Iterator[_Loop]:
    """The loops of code that is declarations of arrays, and loops each of which is all that is in the one before."""
    lines = list(_by_depth(code))
    top = [place for place, line in enumerate(lines) if re.match(r"  \S", line)]
    *before, begin, end = top if len(top) > 1 else (0, 0)
    declared = all(_LOCAL.fullmatch(lines[place].strip()) for place in before)
    if not lines or not declared or lines[end] != "  }" or not _is_plain(lines, before):
        return
    around: dict[str, int] = {}
    while (header := _LOOP.fullmatch(lines[begin].strip())) and header[3] == "0" and header[2] not in around:
        body, count = "".join(f"{line}\n" for line in lines[begin + 1 : end]), int(header[4])
        yield _Loop("".join(f"{lines[place]}\n" for place in before), dict(around), header[2], count, body)
        around[header[2]] = count
        begin, end = begin + 1, end - 1
        if lines[end].rstrip() != f"{'  ' * (len(around) + 1)}}}" or not _is_alone(lines[begin : end + 1]):
            return


def _by_depth(code: str) -> Iterator[str]:
    """The lines, each as far in as TVM has what stands in so many blocks."""
    depth = 1
    for line in map(str.strip, code.splitlines()):
        yield "  " * (depth - line.startswith("}")) + line
        depth += line.count("{") - line.count("}")


def _is_alone(lines: Sequence[str]) -> bool:
    """True if the first line begins a block that the last one ends."""
    depths = np.cumsum([line.count("{") - line.count("}") for line in lines])
    return bool(depths[-1] == 0 and np.all(depths[:-1] > 0))


def _is_plain(lines: Sequence[str], before: Sequence[int]) -> bool:
    """True if nothing stands between or behind declarations and loop, and all lines are whole statements or braces."""
    shaped = (line.endswith((";", "{", "}")) and line.count("{") <= 1 for line in lines if line.strip())
    return list(before) == list(range(len(before))) and all(shaped)


def _long_axis(shape: Shape) -> int | None:
    return next((axis for axis, size in enumerate(shape) if size > 1), None)


def _row(shape: Shape) -> int:
    """Elements of a row along the first long axis."""
    axis = _long_axis(shape)
    return 1 if axis is None else int(np.prod(shape[axis + 1 :], dtype=np.int64))


def _alone(uses: Sequence[ArrayUse], row: int, count: int) -> bool:
    """True if each step reads and writes its own row of the output alone."""
    steps = np.arange(count)
    of_output = [use.index for use in uses if use.name == WHOLE_OUTPUT]
    return bool(of_output) and all(
        index is not None and np.all(index.low >= row * steps) and np.all(index.high < row * (steps + 1))
        for index in of_output
    )


def _places(uses: Sequence[ArrayUse], name: str, row: int, size: int) -> tuple[Pair, ...] | None:
    """The rows of an array, `size` in all, that each step reads; None if that is not known, or it may be all."""
    found = [use.index for use in uses if use.name == name]
    known = [index for index in found if index is not None]
    if not found or len(known) < len(found):
        return None
    low = np.clip(np.min([index.low for index in known], axis=0) // row, 0, size - 1)
    high = np.clip(np.max([index.high for index in known], axis=0) // row, low, size - 1)
    return None if np.all(high - low == size - 1) else tuple(zip(low.tolist(), (high + 1).tolist(), strict=True))
