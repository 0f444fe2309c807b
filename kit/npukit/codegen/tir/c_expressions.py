"""C expressions as TVM prints them, wrapped in parentheses, printed again as a person would write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

TOKEN = re.compile(r"\s*(\d+\.\d*(?:e[+-]?\d+)?f?|\w+|<<|>>|[<>=!]=|&&|\|\||\"[^\"]*\"|[-+*/%&|^<>!~?:()\[\],])")
TYPE = re.compile(r"(?:u?int(?:8|16|32|64)_t|float|double|bool|void)\Z")

_BINARY = {
    operator: strength
    for strength, operators in enumerate(["||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"], 2)
    for operator in operators.split()
}
_TERNARY, _UNARY, _POSTFIX = 1, 20, 21
_PLAIN = {"+", "-", "*"}
"""Operators of well-known precedence: their operands need no parentheses for the reader's sake."""

PLACE_OF = "place_of"
"""The name of a function in what TVM prints: the address of a symbol plus so many bytes."""

Symbols = Callable[[str, str], str | None]
"""The C for `&name[offset]`, where it is not just that."""


@dataclass(frozen=True)
class _Text:
    """A printed expression and how strongly its outermost operator binds."""

    text: str
    strength: int
    operator: str = ""

    def within(self, strength: int) -> str:
        return self.text if self.strength >= strength else f"({self.text})"


def tidy_expression(source: str, symbols: Symbols = lambda name, offset: None) -> str:
    """The same expression with only the parentheses that the compiler or the reader needs."""
    parser = _Parser(list(_tokens(source)), symbols)
    printed = parser.ternary()
    if parser.rest:
        raise ValueError(f"not a C expression: {source}")
    return printed.text


def _tokens(source: str) -> Iterator[str]:
    position, source = 0, source.rstrip()
    while position < len(source):
        found = TOKEN.match(source, position)
        if found is None:
            raise ValueError(f"not a C expression: {source}")
        yield found[1]
        position = found.end()


class _Parser:
    def __init__(self, tokens: list[str], symbols: Symbols) -> None:
        self.rest = tokens[::-1]
        self._symbols = symbols

    def _peek(self, ahead: int = 0) -> str:
        return self.rest[-1 - ahead] if len(self.rest) > ahead else ""

    def _take(self, expected: str = "") -> str:
        token = self.rest.pop() if self.rest else ""
        if not token or (expected and token != expected):
            raise ValueError(f"expected {expected or 'more'}, found {token or 'the end'}")
        return token

    def ternary(self) -> _Text:
        condition = self._binary(2)
        if self._peek() != "?":
            return condition
        self._take("?")
        yes = self.ternary()
        self._take(":")
        no = self.ternary()
        parts = (part.within(_TERNARY + 1) for part in (condition, yes, no))
        return _Text("{} ? {} : {}".format(*parts), _TERNARY)

    def _binary(self, weakest: int) -> _Text:
        left = self._unary()
        while _BINARY.get(self._peek(), 0) >= weakest:
            operator = self._take()
            right = self._binary(_BINARY[operator] + 1)
            left = _join(left, operator, right)
        return left

    def _unary(self) -> _Text:
        token = self._peek()
        if token in ("-", "!", "~"):
            return _Text(self._take() + self._unary().within(_UNARY), _UNARY)
        if token == "&":
            return self._address()
        if token == "(" and TYPE.match(self._peek(1)):
            return self._cast()
        return self._postfix()

    def _address(self) -> _Text:
        self._take("&")
        name, offset = self._reference()
        symbol = self._symbols(name, offset)
        if symbol is not None:
            return _Text(symbol, _POSTFIX)
        return _Text(name if offset == "0" else f"&{name}[{offset}]", _UNARY)

    def _place(self) -> _Text:
        self._take("(")
        name = self._take()
        self._take(",")
        offset = self.ternary().text
        self._take(")")
        return _Text(self._symbols(name, offset) or f"{name} + {offset}", _POSTFIX)

    def _reference(self) -> tuple[str, str]:
        """`name[offset]`, perhaps in parentheses."""
        wrapped = self._peek() == "("
        if wrapped:
            self._take("(")
        name = self._take()
        self._take("[")
        offset = self.ternary().text
        self._take("]")
        if wrapped:
            self._take(")")
        return name, offset

    def _cast(self) -> _Text:
        self._take("(")
        kind = self._take()
        stars = ""
        while self._peek() == "*":
            stars += self._take()
        self._take(")")
        if self._peek() == PLACE_OF:
            return self._unary()
        return _Text(f"({kind}{' ' + stars if stars else ''}){self._unary().within(_UNARY)}", _UNARY)

    def _postfix(self) -> _Text:
        if self._peek() == "(":
            self._take("(")
            inner = self.ternary()
            self._take(")")
            return inner
        text = self._take()
        if text == PLACE_OF:
            return self._place()
        while self._peek() in ("[", "("):
            opening = self._take()
            closing = {"[": "]", "(": ")"}[opening]
            text += opening + self._arguments(closing) + closing
        return _Text(text, _POSTFIX)

    def _arguments(self, closing: str) -> str:
        arguments = []
        while self._peek() != closing:
            arguments.append(self.ternary().text)
            if self._peek() == ",":
                self._take(",")
        self._take(closing)
        return ", ".join(arguments)


def _join(left: _Text, operator: str, right: _Text) -> _Text:
    strength = _BINARY[operator]
    if operator in ("+", "-") and right.text.startswith("-") and right.text[1:].isdigit():
        operator, right = {"+": "-", "-": "+"}[operator], _Text(right.text[1:], _POSTFIX)
    if operator == "-" and left.text == "0":
        return _Text("-" + right.within(_UNARY), _UNARY)
    text = f"{_operand(left, operator, strength)} {operator} {_operand(right, operator, strength + 1)}"
    return _Text(text, strength, operator)


def _operand(part: _Text, operator: str, strength: int) -> str:
    """The operand, with parentheses where C needs them, or where a reader would have to think."""
    known = operator in _PLAIN and (not part.operator or part.operator in _PLAIN)
    compared = _BINARY[operator] <= _BINARY["<"] and operator not in ("&", "|", "^") and part.operator in _PLAIN
    same = operator == part.operator and operator in ("&&", "||")
    plain = part.strength >= _UNARY or known or compared or same
    return part.within(strength) if plain else f"({part.text})"
