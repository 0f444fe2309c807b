"""Bounds of integer expressions in C, for each step of a loop: which elements of an array they may mean."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

_CAST = re.compile(r"\(int(?:32|64)_t\)")
_BEYOND = re.compile(r"[?&|!<=\[\"']|>(?!>)|\((?:u?int\d+_t|float|bool)\)")
"""Characters of expressions that are more than sums, products and quotients of integers."""
_LIMIT = re.compile(r"\(([^?:]+)\) ([<>]) \(([^?:]+)\) \? \(\1\) : \(\3\)")
"""The less or the larger of two, as TVM prints it."""
_LIMITS = {"<": "least", ">": "largest"}
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = 1 << 31


@dataclass(frozen=True)
class Interval:
    """The least and the largest value, in each step of a loop."""

    low: np.ndarray
    high: np.ndarray


Known = Mapping[str, Interval]


def number(value: int, steps: int) -> Interval:
    return Interval(np.full(steps, value), np.full(steps, value))


def any_word(steps: int) -> Interval:
    """The interval of all that 32 bits hold."""
    return Interval(np.full(steps, -_WORD), np.full(steps, _WORD - 1))


def bounds(text: str, known: Known, steps: int) -> Interval | None:
    """The bounds of an expression of known names; None if it is more than that, or may not fit 32 bits."""
    plain, limits = _CAST.sub("", text).strip(), 1
    while limits:
        plain, limits = _LIMIT.subn(lambda found: f"{_LIMITS[found[2]]}({found[1]}, {found[3]})", plain)
    if _BEYOND.search(plain.replace(">>", "")):
        return None
    try:
        return _bounds(ast.parse(plain, mode="eval").body, known, steps)
    except (SyntaxError, KeyError, TypeError):
        return None


def slope(text: str, slopes: Mapping[str, int]) -> int | None:
    """The slope of an expression: how far it moves where each name moves so far; None if that is not one number."""
    plain = _CAST.sub("", text).strip()
    if not slopes.keys() & set(_NAME.findall(plain)):
        return 0
    try:
        return None if _BEYOND.search(plain) else _slope(ast.parse(plain, mode="eval").body, slopes)
    except (SyntaxError, TypeError):
        return None


def _slope(node: ast.expr, slopes: Mapping[str, int]) -> int:
    match node:
        case ast.Name(id=name):
            return slopes.get(name, 0)
        case ast.Constant():
            return 0
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _slope(left, slopes) + _slope(right, slopes)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _slope(left, slopes) - _slope(right, slopes)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            return _slope(left, slopes) * times
        case ast.BinOp(left=left, right=right) if not _slope(left, slopes) and not _slope(right, slopes):
            return 0
    raise TypeError


def _bounds(node: ast.expr, known: Known, steps: int) -> Interval:
    match node:
        case ast.Constant(value=int(value)):
            return number(value, steps)
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _bounds(operand, known, steps)
            return Interval(-inner.high, -inner.low)
        case ast.BinOp(left=left, op=operator, right=right):
            return _fitting(_COMBINED[type(operator)](_bounds(left, known, steps), _bounds(right, known, steps)))
        case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in _LIMITS.values():
            first, second = _bounds(left, known, steps), _bounds(right, known, steps)
            limit = np.minimum if name == _LIMITS["<"] else np.maximum
            return Interval(limit(first.low, second.low), limit(first.high, second.high))
    raise TypeError


def _fitting(made: Interval) -> Interval:
    """The bounds of what is computed: beyond 32 bits C has other numbers."""
    if made.low.min() < -_WORD or made.high.max() >= _WORD:
        raise TypeError
    return made


def _sum(left: Interval, right: Interval) -> Interval:
    return Interval(left.low + right.low, left.high + right.high)


def _difference(left: Interval, right: Interval) -> Interval:
    return Interval(left.low - right.high, left.high - right.low)


def _product(left: Interval, right: Interval) -> Interval:
    corners = np.stack([a * b for a in (left.low, left.high) for b in (right.low, right.high)])
    return Interval(corners.min(axis=0), corners.max(axis=0))


def _divisor(right: Interval) -> int:
    """The one positive number of an interval."""
    values = {*right.low.tolist(), *right.high.tolist()}
    if len(values) != 1 or min(values) < 1:
        raise TypeError
    return values.pop()


def _quotient(left: Interval, right: Interval) -> Interval:
    """A quotient as in C: towards zero."""
    by = _divisor(right)
    return Interval(*(np.sign(each) * (np.abs(each) // by) for each in (left.low, left.high)))


def _rest(left: Interval, right: Interval) -> Interval:
    """The rest of what is never negative; as it is where it is less than the divisor."""
    by = _divisor(right)
    if left.low.min() < 0:
        raise TypeError
    fits = left.high < by
    return Interval(np.where(fits, left.low, 0), np.where(fits, left.high, by - 1))


def _shifted(left: Interval, right: Interval) -> Interval:
    by = _divisor(right)
    return Interval(left.low >> by, left.high >> by)


_COMBINED: Mapping[type[ast.operator], Callable[[Interval, Interval], Interval]] = {
    ast.Add: _sum,
    ast.Sub: _difference,
    ast.Mult: _product,
    ast.Div: _quotient,
    ast.Mod: _rest,
    ast.RShift: _shifted,
}
