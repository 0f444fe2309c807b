"""Printer of TVM's C expressions without their superfluous parentheses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from npukit.errors import NpukitError
from npukit.net.c_code.parse import BINDS, Expression, expression

_CHOICE, _UNARY, _POSTFIX = -1, 20, 21
"""Precedence of expressions other than binary operators, which are in `BINDS`."""
_PLAIN = {"+", "-", "*"}
"""Operators of well-known precedence: their operands need no parentheses for the reader."""

PLACE_OF = "place_of"
"""A function in TVM's output that stands for a symbol's address plus an offset in bytes."""

Symbols = Callable[[str, str], str | None]
"""The C for `&name[offset]`, or None for the plain form."""


@dataclass(frozen=True)
class _Text:
    """A printed expression, and the precedence of the outermost operator."""

    text: str
    strength: int
    operator: str = ""

    def within(self, strength: int) -> str:
        return self.text if self.strength >= strength else f"({self.text})"


def tidy_expression(source: str, symbols: Symbols = lambda name, offset: None) -> str:
    """The same expression with only the parentheses needed by the compiler or the reader."""
    try:
        return _Printer(symbols).text(expression(source))
    except RecursionError as fault:
        raise NpukitError("the C of an op nests its expressions too deeply", tries=["build the model again"]) from fault


@dataclass(frozen=True)
class _Printer:
    symbols: Symbols

    def text(self, source: Expression) -> str:
        return self.printed(source).text

    def printed(self, source: Expression) -> _Text:
        if isinstance(source, str):
            return _Text(source, _POSTFIX)
        kind, *operands = source
        match kind:
            case "?":
                parts = (self.printed(operand).within(_CHOICE + 1) for operand in operands)
                return _Text("{} ? {} : {}".format(*parts), _CHOICE)
            case "[]":
                return _Text(f"{self.text(operands[0])}[{self.text(operands[1])}]", _POSTFIX)
            case "()":
                return self._call(*operands)
            case "cast":
                return self._cast(*operands)
            case "&" if len(operands) == 1:
                return self._address(operands[0])
            case _ if len(operands) == 1:
                return _Text(f"{kind}{self.printed(operands[0]).within(_UNARY)}", _UNARY)
            case _:
                return _join(self.printed(operands[0]), str(kind), self.printed(operands[1]))

    def _call(self, function: Expression, *given: Expression) -> _Text:
        arguments = [self.text(each) for each in given]
        if function == PLACE_OF:
            name, offset = arguments
            return _Text(self.symbols(name, offset) or f"{name} + {offset}", _POSTFIX)
        return _Text(f"{self.text(function)}({', '.join(arguments)})", _POSTFIX)

    def _cast(self, kind: Expression, value: Expression) -> _Text:
        printed = self.printed(value)
        if value[:2] == ("()", PLACE_OF):
            return printed
        plain = str(kind).rstrip("*")
        stars = str(kind)[len(plain) :]
        return _Text(f"({plain}{' ' + stars if stars else ''}){printed.within(_UNARY)}", _UNARY)

    def _address(self, element: Expression) -> _Text:
        name, offset = (self.text(each) for each in element[1:])
        symbol = self.symbols(name, offset)
        if symbol is not None:
            return _Text(symbol, _POSTFIX)
        return _Text(name if offset == "0" else f"&{name}[{offset}]", _UNARY)


def _join(left: _Text, operator: str, right: _Text) -> _Text:
    strength = BINDS[operator]
    if operator in ("+", "-") and right.text.startswith("-") and right.text[1:].isdigit():
        operator, right = {"+": "-", "-": "+"}[operator], _Text(right.text[1:], _POSTFIX)
    if operator == "-" and left.text == "0":
        return _Text("-" + right.within(_UNARY), _UNARY)
    text = f"{_operand(left, operator, strength)} {operator} {_operand(right, operator, strength + 1)}"
    return _Text(text, strength, operator)


def _operand(part: _Text, operator: str, strength: int) -> str:
    """The operand, in parentheses where C needs them, or where a reader would hesitate."""
    known = operator in _PLAIN and (not part.operator or part.operator in _PLAIN)
    compared = BINDS[operator] <= BINDS["<"] and operator not in ("&", "|", "^") and part.operator in _PLAIN
    same = operator == part.operator and operator in ("&&", "||")
    plain = part.strength >= _UNARY or known or compared or same
    return part.within(strength) if plain else f"({part.text})"
