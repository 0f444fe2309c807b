"""C that TVM makes, divided by rows: a loop, alone in those around it, makes a row of the output in each step.

Each step must write its own row alone and begin with nothing that another one left. Then a part of the steps is a tile,
and what it reads of each input follows from the bounds of the subscripts (`net/c_code/intervals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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

    def box(self, name: str, shape: Shape, output: Box) -> Box:
        """The box of a parameter that a box of the output is made of."""
        whole = Box.whole(shape)
        if name not in self.places:
            return whole
        read, axis = self.places[name][output.start[self.axis] : output.stop[self.axis]], self.axes[name]
        first, last = min(low for low, _ in read), max(high for _, high in read)
        starts, stops = list(whole.start), list(whole.stop)
        starts[axis], stops[axis] = first, last
        return Box(tuple(starts), tuple(stops))


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
    found = () if axis is None else (_rows_of_loop(loop, shapes, axis) for loop in _loops(code))
    return next((rows for rows in found if rows), None)


def _rows_of_loop(loop: _Loop, shapes: tuple[tuple[str, Shape], ...], axis: int) -> Rows | None:
    known = dict(shapes)
    uses = loop.uses() if known[WHOLE_OUTPUT][axis] == loop.count else None
    if uses is None or not _alone(uses, known[WHOLE_OUTPUT], loop.count):
        return None
    read = {name: _places(uses, name, shape) for name, shape in shapes if name != WHOLE_OUTPUT}
    places = {name: found for name, found in read.items() if found is not None}
    axes = {name: found for name, shape in shapes if (found := _long_axis(shape)) is not None}
    return Rows(axis, loop.count, places, axes, {name: _row(known[name]) for name in axes}, loop.name)


def part_of(code: str, rows: Rows, first: int, stop: int, begins: Mapping[str, int]) -> str:
    """The code of the steps from `first` to before `stop`, where arrays begin with the rows `begins`.

    It counts from 0 where each step does what the one before does a row on: parts of one size are one code.
    """
    loop = next(each for each in _LOOP.finditer(code) if re.fullmatch(rows.loop, each[2]))
    offsets = {name: row * rows.sizes[name] for name, row in begins.items() if row}
    body = code[loop.end() :]
    if _moves_alike(body, loop[2], first, offsets):
        first, stop = 0, stop - first
    else:
        body = _moved(body, offsets)
    return f"{code[: loop.start()]}for ({loop[1]} {loop[2]} = {first}; {loop[2]} < {stop}; ++{loop[2]}) {{{body}"


def _moves_alike(body: str, name: str, first: int, offsets: Mapping[str, int]) -> bool:
    """True if the loop's `name` says in subscripts alone where it is, `first` steps on as far as arrays begin later."""
    slopes: dict[str, int] = {name: 1}
    for line in map(str.strip, body.splitlines()):
        value, rest, done = _VALUE.fullmatch(line), "", 0
        if value and (moved := slope(value[3], slopes)) is not None:
            slopes[value[2]] = moved
            continue
        for array, begin, end in subscripts(line):
            moved = slope(line[begin:end], slopes)
            if moved is None or moved * first != offsets.get(array, 0):
                return False
            rest, done = rest + line[done:begin], end
        if any(slopes.get(word) for word, _ in _USED.findall(rest + line[done:])):
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
    _scopes: list[dict[str, Interval | None]] = field(default_factory=list)
    _inner: list[str] = field(default_factory=list)
    """The name that each block within a step counts by, if it is a loop."""

    def uses(self) -> list[ArrayUse] | None:
        """The elements that the steps read and write; None if a step may read what another one left."""
        steps = np.arange(self.count)
        around = {name: Interval(0 * steps, 0 * steps + count - 1) for name, count in self.around.items()}
        self._scopes = [{**around, self.name: Interval(steps, steps)}]
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
                low, high = (number(int(inner[place]) - less, self.count) for place, less in ((3, 0), (4, 1)))
                self._scopes[-1][inner[2]] = Interval(low.low, high.high)
        if value := _VALUE.fullmatch(line):
            whatever = any_word(self.count) if value[1] == "int32" else None
            self._scopes[-1][value[2]] = None if value[2] in changed else self._bounds(value[3]) or whatever

    def _bounds(self, text: str) -> Interval | None:
        known: dict[str, Interval] = {}
        for scope in self._scopes:
            known |= {name: each for name, each in scope.items() if each is not None}
            for name, each in scope.items():
                if each is None:
                    known.pop(name, None)
        return bounds(text, known, self.count)

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


def _alone(uses: Sequence[ArrayUse], shape: Shape, count: int) -> bool:
    """True if each step reads and writes its own row of the output alone."""
    row, steps = _row(shape), np.arange(count)
    of_output = [use.index for use in uses if use.name == WHOLE_OUTPUT]
    return bool(of_output) and all(
        index is not None and np.all(index.low >= row * steps) and np.all(index.high < row * (steps + 1))
        for index in of_output
    )


def _places(uses: Sequence[ArrayUse], name: str, shape: Shape) -> tuple[Pair, ...] | None:
    """The rows of an array that each step reads; None if that is not known, or it may be all."""
    axis = _long_axis(shape)
    found = [use.index for use in uses if use.name == name]
    known = [index for index in found if index is not None]
    if axis is None or not found or len(known) < len(found):
        return None
    row, size = _row(shape), shape[axis]
    low = np.clip(np.min([index.low for index in known], axis=0) // row, 0, size - 1)
    high = np.clip(np.max([index.high for index in known], axis=0) // row, low, size - 1)
    return None if np.all(high - low == size - 1) else tuple(zip(low.tolist(), (high + 1).tolist(), strict=True))
