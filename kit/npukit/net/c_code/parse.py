"""The C of a `tvm_code` op as statements and expressions: what TVM prints, and `templates/ops`, need no more of C.

An expression is its operator and operands; a name and a number are their text. What is no C is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Expression = str | tuple["Expression", ...]
"""A name, a number, or an operator with its operands: `[]` of an array and a place, `()` of a function and what it is
given, `cast` of a type and a value, `?` of a condition and two values."""

_TOKEN = re.compile(
    r"[A-Za-z_]\w*|0[xX][\da-fA-F]+\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\w*"
    r'|"[^"]*"'
    r"|<<=|>>=|[-+*/%&|^]=|\+\+|--|<<|>>|&&|\|\||[<>=!]=|\S"
)
_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
BINDS = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}
"""The strength of each operator of two operands, weakest first."""
_ASSIGNS = re.compile(r"(?:[-+*/%&|^]|<<|>>)?=|\+\+|--")
_TYPE = re.compile(r"bool|double|float|u?int\d+_t|int|void")


@dataclass(frozen=True)
class Assignment:
    """A name, or an element of an array, gets a value; `kind` is the type of what is declared."""

    target: Expression
    operator: str
    value: Expression | None
    kind: str = ""


@dataclass(frozen=True)
class Array:
    """An array of a function's own, or another name for a part of one."""

    name: str
    kind: str
    own: bool


@dataclass(frozen=True)
class Loop:
    """A loop; `changed` are the names and arrays that its body gives values."""

    first: tuple[Statement, ...]
    condition: Expression
    step: tuple[Statement, ...]
    body: tuple[Statement, ...]
    changed: frozenset[str]


@dataclass(frozen=True)
class Choice:
    """One of two bodies."""

    condition: Expression
    bodies: tuple[tuple[Statement, ...], ...]


Statement = Assignment | Array | Loop | Choice


@dataclass
class _Reader:
    tokens: list[str]
    """The last one is empty: the end."""
    at: int = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self) -> str:
        found = self.next
        self.at += bool(found)
        return found

    def skip(self, *tokens: str) -> bool:
        """Pass one of these over; false if there is none."""
        found = self.next in tokens
        self.at += found
        return found

    def body(self) -> tuple[Statement, ...]:
        """A statement, or all of a block."""
        if not self.skip("{"):
            return tuple(self.statement())
        found: list[Statement] = []
        while self.next not in ("}", ""):
            found += self.statement()
        self.skip("}")
        return tuple(found)

    def statement(self) -> Iterator[Statement]:
        if self.next == "{":
            yield from self.body()
        elif self.skip("for"):
            yield self.loop()
        elif self.skip("while"):
            condition, start, body = self.primary(), self.at, self.body()
            yield Loop((), condition, (), body, frozenset(self.changed(start)))
        elif self.skip("if"):
            condition, first = self.primary(), self.body()
            yield Choice(condition, (first, self.body() if self.skip("else") else ()))
        else:
            yield from self.simple()
            if not self.skip(";"):
                self.take()

    def loop(self) -> Loop:
        self.skip("(")
        first = tuple(self.simple())
        self.skip(";")
        condition = self.expression()
        self.skip(";")
        step = tuple(self.simple())
        self.skip(")")
        start, body = self.at, self.body()
        return Loop(first, condition, step, body, frozenset(self.changed(start)))

    def changed(self, start: int) -> Iterator[str]:
        """The names and arrays that get values in the tokens from there on."""
        name = ""
        for token in self.tokens[start : self.at]:
            if _ASSIGNS.fullmatch(token):
                yield name
            named = re.match(r"[A-Za-z_]", token) and not _TYPE.fullmatch(token)
            name = "" if token in (";", "{", "}") else name or (token if named else "")

    def simple(self) -> Iterator[Statement]:
        """Declarations, an assignment, or nothing."""
        self.skip("const")
        kind = self.take() if _TYPE.fullmatch(self.next) else ""
        while self.next not in (";", ")", "}", ""):
            pointer = bool(kind) and self.skip("*")
            self.skip("const")
            before = self.take() if self.next in ("++", "--") else ""
            target = self.primary()
            operator = before or (self.take() if _ASSIGNS.fullmatch(self.next) else "")
            value = self.expression() if operator.endswith("=") else None
            if pointer or (kind and isinstance(target, tuple)):
                yield Array(str(target[1]) if isinstance(target, tuple) else target, kind, not pointer)
            else:
                yield Assignment(target, operator, value, kind)
            if not self.skip(","):
                return

    def expression(self) -> Expression:
        found = self.binary(0)
        if not self.skip("?"):
            return found
        first = self.expression()
        self.skip(":")
        return ("?", found, first, self.expression())

    def binary(self, level: int) -> Expression:
        left = self.primary()
        while BINDS.get(self.next, -1) >= level:
            operator = self.take()
            left = (operator, left, self.binary(BINDS[operator] + 1))
        return left

    def primary(self) -> Expression:
        if self.skip("("):
            return self.cast() if _TYPE.fullmatch(self.next) else self.closed(self.expression())
        token = self.take()
        if token in ("-", "!", "~", "&", "*", "+"):
            return (token, self.primary())
        found: Expression = token
        while self.next in ("[", "("):
            kind = self.take()
            found = ("[]", found, self.expression()) if kind == "[" else ("()", found, *self.given())
            self.skip("]")
        return found

    def closed(self, found: Expression) -> Expression:
        self.skip(")")
        return found

    def cast(self) -> Expression:
        kind = self.take()
        while self.next not in (")", ""):
            kind += self.take()
        self.skip(")")
        return ("cast", kind, self.primary())

    def given(self) -> Iterator[Expression]:
        while self.next not in (")", ""):
            yield self.expression()
            self.skip(",")
        self.skip(")")


def expression(code: str) -> Expression:
    """An expression; a ValueError if that is not all that the code is."""
    reader = _Reader([*_TOKEN.findall(code), ""])
    found = reader.expression()
    if reader.next or code.count("(") != code.count(")") or code.count("[") != code.count("]"):
        raise ValueError(f"not a C expression: {code}")
    return found


def statements(code: str) -> tuple[Statement, ...]:
    """The statements of a function's body."""
    reader, found = _Reader([*_TOKEN.findall(code), ""]), list[Statement]()
    while reader.next:
        found += reader.statement()
    return tuple(found)
