"""Predicted cycles of a kernel in TIR on a Cortex-M4F: the instructions that a compiler makes of the printed C.

A value counts once, outside of the loops in which it does not change. Subscripts that move evenly with loops, and
unread values, cost nothing. The longer of two branches counts.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from npukit.net.attributes import MOST_CYCLES
from npukit.net.c_code.function import INT8_OF_RATIO, MATH
from npukit.net.importer.tir.rows import nodes_of

ir: Any = tirx
_VARIABLE: Any = tvm.ir.Var
_LOAD_NODE: Any = tvm.ir.TensorLoad
_CALL_NODE: Any = tvm.ir.Call

_CALLED = {**MATH, INT8_OF_RATIO: 4}
WORD, FLOAT, WORDS = "word", "float", "words"
"""Kinds of numbers: up to 32 bits, single precision, 64 bits."""
_KINDS = {"float32": FLOAT, "int64": WORDS, "uint64": WORDS}
TURN, _ENTRY, _BRANCH, CALL = 3, 3, 2, 4
"""Cycles of a loop's turn, a loop's beginning, a condition, and a call. These and the next figures are GCC's:
`benchmarks/core/core_predictions.py` compares them with the emulator."""
_NARROWED = 1
"""Cycles of a cast to 8 or 16 bits, unless a store follows."""
_UNROLLED = 2
"""Turns of loops that compilers unroll."""
_OF_BYTES, _IN_A_WORD, _COPY, _COPIED = ("bool", "int8", "uint8"), 4, 20, 1.25
"""Types of a byte, bytes of a word, and cycles of a copy by memcpy: of the call, and of a byte."""
LOAD = {WORD: 2, FLOAT: 2, WORDS: 3}
STORE = {WORD: 1, FLOAT: 2, WORDS: 3}
_COMPARED = {WORD: 1, FLOAT: 2, WORDS: 2}
_SELECTED = {WORD: 2, FLOAT: 2, WORDS: 3}
_DIVIDED = {WORD: 7, FLOAT: 14, WORDS: 80}
_BY_A_NUMBER, _CONVERTED, _WORDS_CONVERTED, _AND, _STRIDE = 4, 2, 165, 1, 2
_OF_SIGN, _WORDS_HALVED = 1, 6
"""Cycles of a choice by sign, and of a 64-bit division by a power of two."""
_SUM_OF_WORDS, _PRODUCT_OF_WORDS, _SHIFT_OF_WORDS = 2, 4, 3
_FOLDED: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: a // b if isinstance(a, int) and b else a / (b or 1),
    "<<": lambda a, b: int(a) << max(0, min(int(b), 64)),
    ">>": lambda a, b: int(a) >> max(0, min(int(b), 64)),
}
_Range = tuple[float, float]
_ANY: _Range = -MOST_CYCLES, MOST_CYCLES
_RANGES = {"bool": (0, 1), "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
_OPERATORS: Mapping[Any, str] = {
    tirx.Add: "+",
    tirx.Sub: "-",
    tirx.Mul: "*",
    tirx.Div: "/",
    tirx.Mod: "%",
    tirx.And: "&&",
    tirx.Or: "||",
    tirx.EQ: "==",
    tirx.NE: "!=",
    tirx.LT: "<",
    tirx.GT: ">",
    tirx.LE: "<=",
    tirx.GE: ">=",
    ir.LShift: "<<",
    ir.RShift: ">>",
    ir.BitwiseAnd: "&",
    ir.BitwiseOr: "|",
    ir.BitwiseXor: "^",
}
_COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_CHOICE = "prim.if_then_else"


@dataclass(eq=False)
class _Value:
    """The value of an expression. `depth`: the number of loops around the code that changes it. `cost`: cycles of its
    last operation. `even`: it moves evenly with loops. `short`: 64 bits that were 32. `range`: the least and the
    largest it can be."""

    operator: str = ""
    kind: str = WORD
    depth: int = 0
    cost: float = 0
    parts: tuple[_Value, ...] = ()
    even: bool = False
    number: float | None = None
    short: bool = False
    stride: int = 0
    range: _Range = _ANY


def cycles(function: Any) -> int:
    """Predicted cycles of a TIR function that TVM can print as C."""
    count = _Count()
    count.block(function.body)
    return round(min(count.spent[0], MOST_CYCLES))


class _Count:
    """Cycles of statements in order. `spent`: cycles of the function, then of a turn of each open loop."""

    def __init__(self) -> None:
        self.spent = [0.0]
        self._registers: set[Any] = set()
        """Local arrays. An element at a constant place is a register."""
        self._views: dict[Any, Any] = {}
        """The array that each buffer is a view of."""
        self._names: dict[Any, _Value] = {}
        self._elements: dict[tuple[Any, _Value], _Value] = {}
        """Elements that were stored, until another store may have changed them."""
        self._written: Counter[Any] = Counter()
        self._made: dict[tuple[object, ...], _Value] = {}
        self._paid: set[_Value] = set()

    def block(self, body: Any) -> None:
        match body:
            case tirx.SeqStmt():
                for each in body.seq:
                    self.block(each)
            case tirx.AllocBuffer():
                self._registers.add(body.buffer)
            case tirx.DeclBuffer():
                self._view(body)
            case tirx.Bind():
                self._names[body.var] = self._of(body.value)
            case tirx.BufferStore():
                self._store(body.buffer, self._of(body.value), self._of(body.indices[0]))
            case tirx.For():
                self._loop(body)
            case tirx.IfThenElse():
                bodies = [each for each in (body.then_case, body.else_case) if each is not None]
                self._choose(body.condition, [partial(self.block, each) for each in bodies])
            case tirx.While():
                self._choose(body.condition, [partial(self.block, body.body)])

    def _view(self, declared: Any) -> None:
        data = declared.data
        if isinstance(data, _CALL_NODE) and len(data.args) == 1:
            data = data.args[0]
        self._views[declared.buffer] = self._views.get(data, data) if isinstance(data, _VARIABLE) else declared.buffer

    def _array(self, buffer: Any) -> Any:
        return self._views.get(buffer, buffer)

    def _spend(self, cycles: float, depth: int | None = None) -> None:
        self.spent[-1 if depth is None else min(depth, len(self.spent) - 1)] += min(cycles, MOST_CYCLES)

    def _store(self, buffer: Any, value: _Value, place: _Value) -> None:
        """Store a value in an element of an array. Repeated stores to the element count once."""
        array, dtype = self._array(buffer), _dtype(buffer)
        if value.operator == "cast" and value.cost == _NARROWED and value.range == _range(dtype):
            value = value.parts[0]
        self._pay(value)
        numbered, again = place.number is not None, (array, place) in self._elements
        others = {
            key: each
            for key, each in self._elements.items()
            if key[0] != array or (numbered and key[1].number is not None)
        }
        self._elements = {**others, (array, place): value}
        self._written[array] += 1
        if not again and (array not in self._registers or not numbered):
            self._pay_place(place)
            self._spend(STORE[_KINDS.get(dtype, WORD)], place.depth)

    def _loop(self, loop: Any) -> None:
        first = self._of(loop.min)
        end = self._operation("+", (first, self._of(loop.extent)))
        begins, ends = _most(first), _most(end)
        turns = 1 if begins is None or ends is None else max(ends - begins, 0)
        changed = {self._array(each.buffer) for each in nodes_of(loop.body, tirx.BufferStore)}
        self._names[loop.loop_var] = first
        if turns == 1 or (turns == _UNROLLED and not _has_choices(loop.body)):
            self.block(loop.body)
            for _ in range(turns - 1):
                following = self._operation("+", (self._names[loop.loop_var], self._number(1)))
                self._pay(following)
                self._names[loop.loop_var] = following
                self.block(loop.body)
        elif turns:
            self.spent.append(0)
            self._forget(changed)
            self._names[loop.loop_var] = _Value(depth=len(self.spent) - 1, even=True, stride=1)
            self.block(loop.body)
            copies = turns % _IN_A_WORD == 0 and self._copies_bytes(loop.body)
            inner = self.spent.pop()
            once = _ENTRY + turns * (TURN + inner) if turns > _UNROLLED else turns * inner
            self._spend(_COPY + turns * _COPIED if copies else once)
            self._forget(changed)

    def _copies_bytes(self, body: Any) -> bool:
        """True for a copy of consecutive bytes, of which compilers make a call of memcpy."""
        if not isinstance(body, tirx.BufferStore) or not isinstance(body.value, _LOAD_NODE):
            return False
        read: Any = body.value
        moved = [self._of(place).stride for place in (body.indices[0], read.indices[0])]
        return moved == [1, 1] and _dtype(body.buffer) == _dtype(body.value) in _OF_BYTES

    def _forget(self, changed: Collection[Any]) -> None:
        """Give the elements of changed arrays unknown values."""
        self._written.update(changed)
        self._elements = {key: self._fresh(each.kind) for key, each in self._elements.items() if key[0] in changed}

    def _fresh(self, kind: str = WORD) -> _Value:
        return _Value(kind=kind, depth=len(self.spent) - 1)

    def _choose(self, condition: Any, bodies: Sequence[Callable[[], None]]) -> None:
        """Count a condition and the longer of two bodies."""
        self._pay(self._of(condition))
        self._spend(_BRANCH)
        begun, elements, paid = self.spent, self._elements, self._paid
        found: list[list[float]] = []
        changed: set[Any] = set()
        for body in [*bodies, *([lambda: None] if len(bodies) == 1 else [])]:
            self.spent, self._elements, self._paid = [*begun], {**elements}, {*paid}
            body()
            found.append(self.spent)
            changed |= {key[0] for key in {*self._elements} ^ {*elements}}
        self.spent, self._elements, self._paid = max(found, key=sum), elements, paid
        self._forget(changed)

    def _pay(self, value: _Value) -> None:
        """Spend the cycles of a value, once."""
        if value in self._paid:
            return
        self._paid.add(value)
        for part in value.parts:
            if value.operator == "[]":
                self._pay_place(part)
                continue
            if part not in self._paid and part.operator == "[]" and part.kind == FLOAT and part.stride > 1:
                self._pay(self._value("stride", (_mover(part),), WORD, _STRIDE, part.stride))
            self._pay(part)
        self._spend(value.cost, value.depth)

    def _pay_node(self, node: Any) -> None:
        self._pay(self._of(node))

    def _pay_place(self, place: _Value) -> None:
        if not place.even:
            self._pay(place)

    def _of(self, node: Any) -> _Value:
        kind = type(node)
        if kind in _OPERATORS:
            return self._operation(_OPERATORS[kind], (self._of(node.a), self._of(node.b)))
        match node:
            case tirx.IntImm():
                return self._cast(_dtype(node), self._number(int(node.value)))
            case tirx.FloatImm():
                number = float(np.nan_to_num(node.value, posinf=1, neginf=-1))
                return self._operation("-", (self._number(-number),)) if number < 0 else self._number(number)
            case _LOAD_NODE():
                return self._element(node.source, self._of(node.indices[0]))
            case ir.Cast():
                return self._cast(_dtype(node), self._of(node.value))
            case tirx.Min() | tirx.Max():
                first, second = self._of(node.a), self._of(node.b)
                compared = self._operation("<" if kind is tirx.Min else ">", (first, second))
                return self._operation("?", (compared, first, second))
            case tirx.Select():
                return self._operation("?", tuple(map(self._of, (node.condition, node.true_value, node.false_value))))
            case tirx.Not() | ir.BitwiseNot():
                return self._operation("!", (self._of(node.a),))
            case _CALL_NODE():
                return self._call(node)
        return self._names.get(node) or self._fresh(_KINDS.get(_dtype(node), WORD))

    def _call(self, call: Any) -> _Value:
        if call.op.name == _CHOICE:
            condition, *values = call.args
            self._choose(condition, [partial(self._pay_node, each) for each in values])
            return self._fresh(_KINDS.get(_dtype(call), WORD))
        if "call_" not in call.op.name:
            return self._operation(call.op.name, tuple(map(self._of, call.args)))
        called, *operands = call.args
        return self._value(
            "()", tuple(map(self._of, operands)), FLOAT, CALL + _CALLED.get(called.value, 0), called.value
        )

    def _number(self, number: float) -> _Value:
        kind = WORD if isinstance(number, int) else FLOAT
        key = "number", kind, number
        if key not in self._made:
            self._made[key] = _Value(kind=kind, even=True, number=number, range=(number, number))
        return self._made[key]

    def _element(self, buffer: Any, place: _Value) -> _Value:
        array, dtype = self._array(buffer), _dtype(buffer)
        if (array, place) in self._elements:
            return self._elements[array, place]
        kind = _KINDS.get(dtype, WORD)
        cost = 0 if array in self._registers and place.number is not None else LOAD[kind]
        return self._value("[]", (place,), kind, cost, (array, self._written[array]), limits=_range(dtype))

    def _cast(self, dtype: str, value: _Value) -> _Value:
        kind = _KINDS.get(dtype, WORD)
        if (kind == FLOAT) != (value.kind == FLOAT):
            return self._value("cast", (value,), kind, _WORDS_CONVERTED if WORDS in (kind, value.kind) else _CONVERTED)
        if kind != value.kind:
            return self._value(
                "cast", (value,), kind, 0, short=kind == WORDS, even=value.even, number=value.number, limits=value.range
            )
        narrow = dtype.removeprefix("u") in ("int8", "int16") and value.operator not in ("", "[]", "cast")
        return self._value("cast", (value,), kind, _NARROWED, dtype, limits=_range(dtype)) if narrow else value

    def _operation(self, operator: str, parts: tuple[_Value, ...]) -> _Value:
        kinds = {each.kind for each in parts[-2:]}
        kind = next((each for each in (FLOAT, WORDS) if each in kinds), WORD)
        if (number := _folded(operator, [each.number for each in parts])) is not None:
            return self._value(operator, parts, kind, 0, even=True, number=number)
        if operator in _COMPARISONS:
            return self._value(operator, parts, WORD, _COMPARED[kind])
        if operator == "?":
            return self._selected(kind, *parts)
        if operator in ("&&", "||"):
            return self._value(operator, parts, WORD, _AND)
        even = operator in ("+", "-", "*", "<<") and all(each.even for each in parts)
        even = even and (operator in "+-" or any(each.number is not None or not each.depth for each in parts))
        return self._value(operator, parts, kind, _cost(operator, kind, parts), even=even)

    def _selected(self, kind: str, condition: _Value, first: _Value, second: _Value) -> _Value:
        compared, (low, high), (least, most) = condition.parts[-2:], first.range, second.range
        limits = min(low, least), max(high, most)
        if compared == (first, second) and condition.operator in _LIMITED and kind != FLOAT:
            limits = _LIMITED[condition.operator](first.range, second.range)
            if limits in (first.range, second.range) and (low >= most or least >= high):
                return first if limits == first.range else second
        if _is_of_sign(condition, first, second):
            return self._value(condition.operator, compared[:1], kind, _OF_SIGN, "sign", limits=limits)
        return self._value("?", (condition, first, second), kind, _SELECTED[kind], limits=limits)

    def _value(
        self,
        operator: str,
        parts: tuple[_Value, ...],
        kind: str,
        cost: float,
        detail: object = "",
        *,
        even: bool = False,
        short: bool = False,
        number: float | None = None,
        limits: _Range = _ANY,
    ) -> _Value:
        """The value of an operation; the same object for the same operation. `detail`: further part of the key."""
        key = operator, detail, kind, *parts
        if key not in self._made:
            depth = max((each.depth for each in parts), default=0)
            stride = _stride(operator, parts, depth)
            limits = limits if number is None else (number, number)
            self._made[key] = _Value(operator, kind, depth, cost, parts, even, number, short, stride, limits)
        return self._made[key]


def _has_choices(body: Any) -> bool:
    """True for statements with branches. A compiler does not unroll a loop around them."""
    calls = (each.op.name == _CHOICE for each in nodes_of(body, _CALL_NODE))
    return bool(nodes_of(body, tirx.IfThenElse, tirx.While)) or any(calls)


def _dtype(node: Any) -> str:
    return str(getattr(node.ty.dtype, "dtype", node.ty.dtype))


def _range(dtype: str) -> _Range:
    return _RANGES.get(dtype, _ANY)


_LIMITED: Mapping[str, Callable[[_Range, _Range], _Range]] = {
    "<": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    ">": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
"""The ranges of a minimum and a maximum."""


def _is_of_sign(condition: _Value, first: _Value, second: _Value) -> bool:
    """True for a choice that one instruction makes from a sign: a word or zero, one or zero."""
    if condition.operator not in _LIMITED or condition.parts[0].kind == FLOAT or condition.parts[1].number != 0:
        return False
    if condition.operator == "<":
        return (first.number, second.number) == (1, 0)
    return first is condition.parts[0] and second.number == 0 and first.kind == WORD


def _has_product(value: _Value) -> bool:
    """True if one instruction multiplies and adds."""
    added = value.operator in ("+", "-") and value.cost == 0 and not value.even
    return added or (value.operator == "*" and value.cost == 1)


def _stride(operator: str, parts: Sequence[_Value], depth: int) -> int:
    """The movement of a value with each turn of the innermost loop that changes it."""
    moved = [each.stride if each.depth == depth else 0 for each in parts]
    if operator in ("+", "-", "cast", "[]"):
        return sum(moved)
    numbers = [each.number for each in parts if each.number is not None]
    return int(sum(moved) * numbers[0]) if operator == "*" and numbers else 2 * any(moved)


def _mover(value: _Value) -> _Value:
    """The variable of the innermost loop that changes the value. Values with equal strides share an address."""
    while value.parts:
        value = next(part for part in value.parts if part.depth == value.depth)
    return value


def _most(value: _Value) -> int | None:
    """The largest value of an expression of numbers and choices; None for any other expression."""
    if value.number is not None:
        return int(value.number)
    known = [_most(part) for part in value.parts[-2:]]
    if value.operator == "?":
        return None if None in known else max(each for each in known if each is not None)
    found = _folded(value.operator, known)
    return None if found is None else int(found)


def _folded(operator: str, numbers: Sequence[float | None]) -> float | None:
    """The result of an operator; None if a number is unknown."""
    known = [each for each in numbers if each is not None]
    if operator not in _FOLDED or len(known) < len(numbers):
        return None
    found = -known[0] if len(known) == 1 else _FOLDED[operator](*known)
    return found if abs(found) < MOST_CYCLES else None


def _cost(operator: str, kind: str, parts: Sequence[_Value]) -> float:
    """The cycles of an operation with a result of the kind."""
    by = parts[-1].number
    if operator in ("/", "%"):
        if operator == "/" and kind == WORDS and by and int(by).bit_count() == 1:
            return _WORDS_HALVED
        return _BY_A_NUMBER + (operator == "%") if kind == WORD and by is not None else _DIVIDED[kind]
    if operator in ("+", "-") and kind != FLOAT and any(_has_product(part) for part in parts):
        return 0
    if kind != WORDS:
        return 1
    if operator == "*":
        short = all(each.short or each.kind == WORD or each.number is not None for each in parts)
        return 1 if short else _PRODUCT_OF_WORDS
    if operator in ("<<", ">>"):
        return 1 if by is not None and by >= 31 else _SHIFT_OF_WORDS
    return _SUM_OF_WORDS
