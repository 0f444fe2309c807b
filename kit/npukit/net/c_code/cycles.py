"""The cycles of a `tvm_code` op's C on a Cortex-M4F: those of the instructions that a compiler leaves of it.

A value counts once, outside of the loops in which it does not change. Places in arrays that move evenly with loops, and
what nobody reads, cost nothing. Of two branches the longer one counts.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from npukit.net.attributes import TvmCode
from npukit.net.c_code.function import MATH, pointers
from npukit.net.c_code.parse import Array, Assignment, Choice, Expression, Loop, Statement, statements
from npukit.net.net import Net, Op

_LONGEST = 20_000
"""Characters of code that is looked into; longer code, of which TVM makes none, counts a cycle for each."""
_SHIFTED_BITS = 28
"""Bits that a loop shifts out: numbers seldom fill a word, and long ones are those of which half are shifted out."""
_LENGTHS = re.compile(r" < (p\d+)\[\w+\];")
_NUMBER = re.compile(
    r"(?P<whole>0[xX][\da-fA-F]+|\d{1,18})[uUlL]*|(?P<float>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?"
)
_MOST = 1 << 64
"""The bound of numbers that code counts with."""

WORD, FLOAT, WORDS = "word", "float", "words"
_KINDS = {"float": FLOAT, "float32": FLOAT, **dict.fromkeys(("int64_t", "uint64_t", "int64", "uint64"), WORDS)}
_TURN, _ENTRY, _BRANCH, _CALL = 3, 3, 2, 4
"""Cycles of a turn of a loop, of its beginning, of a condition, and of a call; these and those below are GCC's, held
against the emulator by `benchmarks/core/core_predictions.py`."""
_NARROWED = 1
"""Cycles that it takes to make a number of 8 or 16 bits of a word, if it is not stored as such anyway."""
_UNROLLED = 2
"""Turns of loops that compilers write out."""
_LOAD = {WORD: 2, FLOAT: 2, WORDS: 3}
_STORE = {WORD: 1, FLOAT: 2, WORDS: 3}
_COMPARED = {WORD: 1, FLOAT: 2, WORDS: 2}
_SELECTED = {WORD: 2, FLOAT: 2, WORDS: 3}
_DIVIDED = {WORD: 7, FLOAT: 14, WORDS: 80}
_BY_A_NUMBER, _CONVERTED, _WORDS_CONVERTED, _AND, _STRIDE = 4, 2, 165, 1, 2
_OF_SIGN, _WORDS_HALVED = 1, 6
"""Cycles of what depends on the sign alone, and of a division of two words by a power of two."""
_SUM_OF_WORDS, _PRODUCT_OF_WORDS, _SHIFT_OF_WORDS = 2, 4, 3
_FOLDED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a // b if isinstance(a, int) and b else a / (b or 1),
    "<<": lambda a, b: int(a) << max(0, min(int(b), 64)),
    ">>": lambda a, b: int(a) >> max(0, min(int(b), 64)),
}
_ANY = -_MOST, _MOST
_RANGES = {"bool": (0, 1), "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))


@dataclass(eq=False)
class _Value:
    """The value of an expression.

    `what`: its operator. `depth`: the loops around that which it changes in. `cost`: the cycles of its own. `even`: it
    moves evenly with loops. `short`: two words that were one. `range`: the least and the largest it can be.
    """

    what: str = ""
    kind: str = WORD
    depth: int = 0
    cost: float = 0
    parts: tuple[_Value, ...] = ()
    even: bool = False
    number: float | None = None
    short: bool = False
    stride: int = 0
    range: tuple[float, float] = _ANY


def cycles_of(net: Net, op: Op) -> int:
    """Roughly what running an op's code takes on the core."""
    attributes = op.attributes
    assert isinstance(attributes, TvmCode)
    kinds = {each.name: each.dtype for each in pointers(net, op)}
    return cycles(attributes.code, mean_lengths(net, op), kinds)


def mean_lengths(net: Net, op: Op) -> dict[str, float]:
    """The average turns of loops whose ends are the elements of a constant, by its parameter."""
    attributes = op.attributes
    assert isinstance(attributes, TvmCode)
    constants = ((name, net.constants.get(op.inputs[int(name[1:])])) for name in _LENGTHS.findall(attributes.code))
    return {name: float(values.mean()) for name, values in constants if values is not None}


def cycles(
    code: str, lengths: Mapping[str, float] = MappingProxyType({}), types: Mapping[str, str] = MappingProxyType({})
) -> int:
    """Roughly what running the code takes on the core. `lengths`: how often a loop turns on the average whose end is an
    element of a parameter; `types`: what the parameters point to."""
    return _cycles(code, tuple(lengths.items()), tuple(types.items()))


@cache
def _cycles(code: str, lengths: tuple[tuple[str, float], ...], types: tuple[tuple[str, str], ...]) -> int:
    """The same, once for each code: a search asks for every tile, and steps of a recurrent layer have one code."""
    if len(code) > _LONGEST:
        return len(code)
    counted = _Count(dict(lengths), dict(types))
    try:
        counted.block(statements(code))
    except RecursionError:
        return len(code)
    return round(min(counted.spent[0], _MOST))


class _Count:
    """Cycles of statements as they come. `spent`: of a turn of each open loop, the code itself first."""

    def __init__(self, lengths: Mapping[str, float], types: Mapping[str, str]) -> None:
        self.spent = [0.0]
        self._lengths, self._types = lengths, dict(types)
        self._registers: set[str] = set()
        """Arrays of the function's own: an element at a place that is a number is a register."""
        self._names: dict[str, _Value] = {}
        self._elements: dict[tuple[str, _Value], _Value] = {}
        """Elements of arrays that were written, as long as nothing else may have been."""
        self._written: Counter[str] = Counter()
        self._made: dict[tuple[object, ...], _Value] = {}
        self._paid: set[_Value] = set()
        self._rests: dict[tuple[Expression, Expression], int] = {}

    def block(self, body: Sequence[Statement]) -> None:
        for each in body:
            match each:
                case Assignment():
                    self._assign(each)
                case Array(name, kind, own):
                    self._types[name] = kind
                    self._registers |= {name} if own else set()
                case Loop():
                    self._loop(each)
                case Choice(condition, bodies):
                    self._pay(self._of(condition))
                    self._spend(_BRANCH)
                    self._longest(bodies)

    def _spend(self, cycles: float, depth: int | None = None) -> None:
        self.spent[-1 if depth is None else min(depth, len(self.spent) - 1)] += min(cycles, _MOST)

    def _assign(self, told: Assignment) -> None:
        known = told.value is not None or told.operator in ("++", "--")
        value = self._of(_written(told)) if known else self._fresh()
        if self._narrows(told.target, value):
            value = value.parts[0]
        if not told.kind:
            self._pay(value)
        match told.target:
            case str(name):
                self._names[name] = self._cast(told.kind, value) if told.kind else value
            case ("[]", array, place):
                self._store(str(array), self._of(place), value)

    def _narrows(self, target: Expression, value: _Value) -> bool:
        """True of a store that itself makes a number of 8 or 16 bits of a word."""
        types = (self._types.get(str(array), WORD) for array in target[1:2]) if isinstance(target, tuple) else ()
        return value.what == "cast" and value.cost == _NARROWED and value.range in map(_range, types)

    def _store(self, array: str, place: _Value, value: _Value) -> None:
        """Store the value in an element of an array, once if it gets several in turn."""
        kind, numbered, again = self._kind(array), place.number is not None, (array, place) in self._elements
        others = {
            key: each
            for key, each in self._elements.items()
            if key[0] != array or (numbered and key[1].number is not None)
        }
        self._elements = {**others, (array, place): value}
        self._written[array] += 1
        if not again and (array not in self._registers or not numbered):
            self._pay_place(place)
            self._spend(_STORE[kind], place.depth)

    def _kind(self, array: str) -> str:
        return _KINDS.get(self._types.get(array, WORD), WORD)

    def _loop(self, loop: Loop) -> None:
        self.block(loop.first)
        turns = self._turns(loop)
        named = [each.target for each in loop.step if isinstance(each, Assignment) and isinstance(each.target, str)]
        if turns == 1 or (turns == _UNROLLED and not _has_choices(loop.body)):
            self.block([*loop.body, *(*loop.step, *loop.body) * (int(turns) - 1)])
        elif turns:
            self.spent.append(0)
            self._forget(loop.changed)
            self._names |= {name: _Value(depth=len(self.spent) - 1, even=True, stride=1) for name in named}
            self.block(loop.body)
            inner = self.spent.pop()
            self._spend(_ENTRY + turns * (_TURN + inner) if turns > _UNROLLED else turns * inner)
            self._forget({*loop.changed, *named})

    def _forget(self, changed: Collection[str]) -> None:
        """Give what is changed other values from here on."""
        self._written.update(changed)
        self._names |= {name: self._fresh(self._names[name].kind) for name in changed if name in self._names}
        self._elements = {key: self._fresh(each.kind) for key, each in self._elements.items() if key[0] in changed}

    def _fresh(self, kind: str = WORD) -> _Value:
        return _Value(kind=kind, depth=len(self.spent) - 1)

    def _longest(self, bodies: Sequence[Sequence[Statement]]) -> None:
        begun, names, elements, paid = self.spent, self._names, self._elements, self._paid
        found: list[list[float]] = []
        changed: set[str] = set()
        for body in bodies:
            self.spent, self._names, self._elements, self._paid = [*begun], {**names}, {**elements}, {*paid}
            self.block(body)
            found.append(self.spent)
            changed |= {name for name in names if self._names[name] is not names[name]}
            changed |= {key[0] for key in {*self._elements} ^ {*elements}}
        self.spent, self._names, self._elements, self._paid = max(found, key=sum), names, elements, paid
        self._forget(changed)

    def _pay(self, value: _Value) -> None:
        """Spend what it takes to have a value, once."""
        if value in self._paid:
            return
        self._paid.add(value)
        for part in value.parts:
            if value.what == "[]":
                self._pay_place(part)
                continue
            if part not in self._paid and part.what == "[]" and part.kind == FLOAT and part.stride > 1:
                self._pay(self._value("stride", (_mover(part),), WORD, _STRIDE, str(part.stride)))
            self._pay(part)
        self._spend(value.cost, value.depth)

    def _pay_place(self, place: _Value) -> None:
        if not place.even:
            self._pay(place)

    def _of(self, told: Expression) -> _Value:
        if isinstance(told, str):
            return self._of_word(told)
        what, *parts = told
        if what == "[]":
            return self._element(str(parts[0]), self._of(parts[1]))
        if what == "()":
            cost = _CALL + MATH.get(str(parts[0]), 0)
            return self._value("()", tuple(map(self._of, parts[1:])), FLOAT, cost, str(parts[0]))
        if what == "cast":
            return self._cast(str(parts[0]), self._of(parts[1]))
        return self._operation(str(what), tuple(map(self._of, parts)))

    def _of_word(self, word: str) -> _Value:
        if word in self._names:
            return self._names[word]
        if ("word", word) not in self._made:
            value = _number(word)
            kind = WORD if value is None or isinstance(value, int) else FLOAT
            limits = _ANY if value is None else (value, value)
            self._made["word", word] = _Value(kind=kind, even=True, number=value, range=limits)
        return self._made["word", word]

    def _element(self, array: str, place: _Value) -> _Value:
        if (array, place) in self._elements:
            return self._elements[array, place]
        kind, limits = self._kind(array), _range(self._types.get(array, WORD))
        cost = 0 if array in self._registers and place.number is not None else _LOAD[kind]
        return self._value("[]", (place,), kind, cost, f"{array} {self._written[array]}", limits=limits)

    def _cast(self, told: str, value: _Value) -> _Value:
        kind = _KINDS.get(told, WORD)
        if (kind == FLOAT) != (value.kind == FLOAT):
            return self._value("cast", (value,), kind, _WORDS_CONVERTED if WORDS in (kind, value.kind) else _CONVERTED)
        if kind != value.kind:
            return self._value(
                "cast", (value,), kind, 0, short=kind == WORDS, even=value.even, number=value.number, limits=value.range
            )
        narrow = re.match(r"u?int(8|16)", told) and value.what not in ("", "[]", "cast")
        return self._value("cast", (value,), kind, _NARROWED, told, limits=_range(told)) if narrow else value

    def _operation(self, what: str, parts: tuple[_Value, ...]) -> _Value:
        kinds = {each.kind for each in parts[-2:]}
        kind = next((each for each in (FLOAT, WORDS) if each in kinds), WORD)
        if (number := _folded(what, [each.number for each in parts])) is not None:
            return self._value(what, parts, kind, 0, even=True, number=number)
        if what in _COMPARISONS:
            return self._value(what, parts, WORD, _COMPARED[kind])
        if what == "?":
            return self._selected(kind, *parts)
        if what in ("&&", "||"):
            return self._value(what, parts, WORD, _AND)
        even = what in ("+", "-", "*", "<<") and all(each.even for each in parts)
        even = even and (what in "+-" or any(each.number is not None or not each.depth for each in parts))
        return self._value(what, parts, kind, _cost(what, kind, parts), even=even)

    def _selected(self, kind: str, condition: _Value, first: _Value, second: _Value) -> _Value:
        compared, limits = condition.parts[-2:], _either(first.range, second.range)
        if compared == (first, second) and condition.what in _LIMITED and kind != FLOAT:
            limits = _LIMITED[condition.what](first.range, second.range)
            if limits in (first.range, second.range) and not _overlap(first.range, second.range):
                return first if limits == first.range else second
        if _is_of_sign(condition, first, second):
            return self._value(condition.what, compared[:1], kind, _OF_SIGN, "sign", limits=limits)
        return self._value("?", (condition, first, second), kind, _SELECTED[kind], limits=limits)

    def _value(
        self,
        what: str,
        parts: tuple[_Value, ...],
        kind: str,
        cost: float,
        told: str = "",
        *,
        even: bool = False,
        short: bool = False,
        number: float | None = None,
        limits: tuple[float, float] = _ANY,
    ) -> _Value:
        key = what, told, kind, *parts
        if key not in self._made:
            depth = max((each.depth for each in parts), default=0)
            stride = _stride(what, parts, depth)
            limits = limits if number is None else (number, number)
            self._made[key] = _Value(what, kind, depth, cost, parts, even, number, short, stride, limits)
        return self._made[key]

    def _turns(self, loop: Loop) -> float:
        """The turns of a loop; 1 if that is not known. One that goes on where another left off has what that left."""
        match loop.condition, loop.step:
            case (">", str(_), "0"), (Assignment(operator=">>=", value=str(by)),):
                return _SHIFTED_BITS / (_number(by) or 1)
            case ("<", _, ("[]", str(array), _)), _ if array in self._lengths:
                return self._lengths[array]
            case (("<" | "<=") as until, _, last), (Assignment() as step,):
                return self._counted(loop, until, last, step)
        return 1

    def _counted(self, loop: Loop, until: str, last: Expression, step: Assignment) -> int:
        begins = loop.first[0] if loop.first else None
        first = _most(self._of(begins.value)) if isinstance(begins, Assignment) and begins.value else 0
        end, by = _most(self._of(last)), _most(self._of(step.value)) if step.value else 1
        if first is None or end is None or by is None:
            return 1
        turns = -(-max(end + (until == "<=") - first, 0) // max(by, 1))
        rest = turns if begins else self._rests.get((step.target, last), turns)
        self._rests[step.target, last] = by - 1
        return min(turns, rest)


def _range(kind: str) -> tuple[float, float]:
    return _RANGES.get(kind.removesuffix("_t"), _ANY)


def _either(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return min(first[0], second[0]), max(first[1], second[1])


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


_LIMITED: Mapping[str, Callable[[tuple[float, float], tuple[float, float]], tuple[float, float]]] = {
    "<": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ">": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""The ranges of the less and of the larger of two."""


def _is_of_sign(condition: _Value, first: _Value, second: _Value) -> bool:
    """True of what a comparison with zero decides in one instruction: a word or zero, one or zero."""
    if condition.what not in _LIMITED or condition.parts[0].kind == FLOAT or condition.parts[1].number != 0:
        return False
    if condition.what == "<":
        return (first.number, second.number) == (1, 0)
    return first is condition.parts[0] and second.number == 0 and first.kind == WORD


def _has_product(value: _Value) -> bool:
    """True if one instruction multiplies and adds."""
    return (value.what == "*" and value.cost == 1) or (value.what in ("+", "-") and value.cost == 0 and not value.even)


def _stride(what: str, parts: Sequence[_Value], depth: int) -> int:
    """The places that a value moves on with each turn of the innermost loop that it changes in."""
    moved = [each.stride if each.depth == depth else 0 for each in parts]
    if what in ("+", "-", "cast", "[]"):
        return sum(moved)
    numbers = [each.number for each in parts if each.number is not None]
    return int(sum(moved) * numbers[0]) if what == "*" and numbers else 2 * any(moved)


def _has_choices(body: Sequence[Statement]) -> bool:
    """True of statements with branches: a compiler writes them once, however few the turns of their loop are."""
    return any(isinstance(each, Choice) or (isinstance(each, Loop) and _has_choices(each.body)) for each in body)


def _mover(value: _Value) -> _Value:
    """The name of the innermost loop that the value changes in: what it moves so far apart shares an address."""
    while value.parts:
        value = next(part for part in value.parts if part.depth == value.depth)
    return value


def _most(value: _Value) -> int | None:
    """The largest number that it can be, if it is made of numbers; of a choice, any of what may be chosen."""
    if value.number is not None:
        return int(value.number)
    known = [_most(part) for part in value.parts[-2:]]
    if value.what == "?":
        return None if None in known else max(each for each in known if each is not None)
    found = _folded(value.what, known)
    return None if found is None else int(found)


def _folded(what: str, numbers: Sequence[float | None]) -> float | None:
    """The result of an operator, if all numbers are known."""
    known = [each for each in numbers if each is not None]
    if what not in _FOLDED or len(known) < len(numbers):
        return None
    found = -known[0] if len(known) == 1 else _FOLDED[what](*known)
    return found if abs(found) < _MOST else None


def _number(word: str) -> float | None:
    found = _NUMBER.fullmatch(word)
    return None if found is None else int(found["whole"], 0) if found["whole"] else float(found["float"])


def _written(told: Assignment) -> Expression:
    """The expression that is assigned, also of an operator that changes a name."""
    if told.operator == "=":
        assert told.value is not None
        return told.value
    return told.operator[:-1], told.target, told.value or "1"


def _cost(what: str, kind: str, parts: Sequence[_Value]) -> float:
    """The cycles of an operation that makes a number of that kind."""
    by = parts[-1].number
    if what in ("/", "%"):
        if what == "/" and kind == WORDS and by and int(by).bit_count() == 1:
            return _WORDS_HALVED
        return _BY_A_NUMBER + (what == "%") if kind == WORD and by is not None else _DIVIDED[kind]
    if what in ("+", "-") and kind != FLOAT and any(_has_product(part) for part in parts):
        return 0
    if kind != WORDS:
        return 1
    if what == "*":
        return (
            1
            if all(each.short or each.kind == WORD or each.number is not None for each in parts)
            else _PRODUCT_OF_WORDS
        )
    if what in ("<<", ">>"):
        return 1 if by is not None and by >= 31 else _SHIFT_OF_WORDS
    return _SUM_OF_WORDS
