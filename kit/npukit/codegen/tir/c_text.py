"""Clean-up of the C from TVM's code generator: statements, and expressions with their parentheses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from npukit.errors import NpukitError

_FUNCTION = re.compile(r"^TVM_DLL [\w ]+?\*? (\w+)\([^\n]*\) \{\n(.*?)^\}", re.M | re.S)
_LOOP = re.compile(r"for \((\w+) (\w+) = (.*); \2 < (.*); \+\+\2\) \{")
_BRANCH = re.compile(r"if \((.*)\) \{")
_SCALAR = re.compile(r"(\w+) (\w+)\[1\];")
_DECLARATION = re.compile(r"\w+ (?:\w+(?:\[\d+\])?|\*\w+ = \(.*\)\(work \+ \d+\));")
_RETURN = re.compile(r"return (.*);")
_ASSIGNMENT = re.compile(r"((?:\w+ )?\w+(?:\[.*\])?) = (.*);")

_LINE = 120


def wrapped(text: str) -> str:
    """The text with long lines broken at spaces."""

    def wrap(line: str) -> str:
        indent = line[: len(line) - len(line.lstrip())]
        wrapper = textwrap.TextWrapper(_LINE, indent, indent + "    ", break_long_words=False, break_on_hyphens=False)
        return wrapper.fill(line.strip())

    return "\n".join(wrap(line) if len(line) > _LINE else line for line in text.splitlines())


def function_bodies(source: str, symbols: Symbols = lambda name, offset: None) -> dict[str, str]:
    """The statements of each function in TVM's output, by name, tidied and indented once."""
    return {name: wrapped("\n".join(_tidied(body.splitlines(), symbols))) for name, body in _FUNCTION.findall(source)}


@lru_cache(maxsize=1024)
def tidied_body(body: str) -> str:
    """The tidied statements of one function, cached: tiles of equal blocks repeat the same text."""
    return wrapped("\n".join(_tidied(body.splitlines(), lambda name, offset: None)))


def _tidied(lines: Sequence[str], symbols: Symbols) -> Iterator[str]:
    """Turn arrays of one element into variables. Variables of a single block are declared at their first assignment.
    Variables without a reader are left out, with their assignments."""
    renamed: dict[str, str] = {}
    undeclared: dict[str, str] = {}
    lines = _without_unread(lines)
    for index, line in enumerate(lines):
        statement = line.strip()
        scalar = _SCALAR.fullmatch(statement)
        if scalar:
            name = renamed[scalar[2]] = scalar[2].replace("_ptr", "")
            if _in_one_block(scalar[2], lines[index + 1 :]):
                undeclared[name] = scalar[1]
            else:
                yield f"{'    ' * (_depth(line))}{scalar[1]} {name} = 0;"
            continue
        for array, variable in renamed.items():
            statement = re.sub(rf"\b{array}\[0\]", variable, statement)
        written = _statement(statement, symbols)
        name = written.partition(" ")[0]
        declared = f"{undeclared.pop(name)} {written}" if name in undeclared else written
        yield "    " * _depth(line) + declared


def _without_unread(lines: Sequence[str]) -> list[str]:
    """The lines without unread arrays of one element, and without loops that are empty then."""
    declared = {found[2]: found[0] for line in lines if (found := _SCALAR.fullmatch(line.strip()))}
    unread = [
        name for name, text in declared.items() if not _is_read(name, [each for each in lines if text not in each])
    ]
    dropped = tuple(text for name in unread for text in (declared[name], f"{name}[0] = "))
    if not dropped:
        return list(lines)
    kept = list[str]()
    for line in lines:
        if line.strip() == "}" and kept and _LOOP.match(kept[-1].strip()):
            kept.pop()
        elif not line.strip().startswith(dropped):
            kept.append(line)
    return kept


def _is_read(name: str, lines: Sequence[str]) -> bool:
    """True if a line does more with an array of one element than assign to it."""
    found = (line.strip() for line in lines if re.search(rf"\b{name}\b", line))
    return any(not line.startswith(f"{name}[0] = ") or line.count(name) > 1 for line in found)


def _depth(line: str) -> int:
    return (len(line) - len(line.lstrip())) // 2


def _in_one_block(name: str, lines: Sequence[str]) -> bool:
    """True if all lines with the name are in the block of the first."""
    found = [index for index, line in enumerate(lines) if re.search(rf"\b{name}\b", line)]
    if not found:
        return True
    block = lines[found[0] : found[-1] + 1]
    return min(map(_depth, block)) >= _depth(block[0])


def _statement(text: str, symbols: Symbols) -> str:
    if text in ("", "}", "} else {") or _DECLARATION.fullmatch(text):
        return text
    for pattern, expressions, write in _FORMS:
        found = pattern.fullmatch(text)
        if found:
            parts = enumerate(found.groups())
            return write([tidy_expression(g, symbols) if i in expressions else g for i, g in parts])
    return tidy_expression(text.removesuffix(";"), symbols) + ";"


def _assignment(parts: list[str]) -> str:
    target, value = parts
    target = re.sub(r"\[(.*)\]", lambda index: f"[{tidy_expression(index[1])}]", target)
    return f"{target} += {value[len(target) + 3 :]};" if value.startswith(f"{target} + ") else f"{target} = {value};"


_FORMS = (
    (_LOOP, (2, 3), lambda parts: "for ({0} {1} = {2}; {1} < {3}; {1}++) {{".format(*parts)),
    (_BRANCH, (0,), lambda parts: f"if ({parts[0]}) {{"),
    (_RETURN, (0,), lambda parts: f"return {parts[0]};"),
    (_ASSIGNMENT, (1,), _assignment),
)
"""The forms of statements: the pattern, the groups of the pattern that are expressions, and the writer."""


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
"""Precedence of binary operators, weakest first."""
_TYPE = re.compile(r"bool|double|float|u?int\d+_t|int|void")

_CHOICE, _UNARY, _POSTFIX = -1, 20, 21
"""Precedence of expressions other than binary operators, which are in `BINDS`."""
_PLAIN = {"+", "-", "*"}
"""Operators of well-known precedence: their operands need no parentheses for the reader."""

PLACE_OF = "place_of"
"""A function in TVM's output that stands for a symbol's address plus an offset in bytes."""

Symbols = Callable[[str, str], str | None]
"""The C for `&name[offset]`, or None for the plain form."""


@dataclass
class _Reader:
    tokens: list[str]
    """The tokens, then an empty one as the end."""
    at: int = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def take(self) -> str:
        found = self.next
        self.at += bool(found)
        return found

    def skip(self, *tokens: str) -> bool:
        """Pass over one of these tokens; false if there is none."""
        found = self.next in tokens
        self.at += found
        return found

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
            if _TYPE.fullmatch(self.next):
                return self.cast()
            inner = self.expression()
            self.skip(")")
            return inner
        token = self.take()
        if token in ("-", "!", "~", "&", "*", "+"):
            return (token, self.primary())
        found: Expression = token
        while self.next in ("[", "("):
            kind = self.take()
            found = ("[]", found, self.expression()) if kind == "[" else ("()", found, *self.given())
            self.skip("]")
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
    """The expression; a ValueError for any other code."""
    reader = _Reader([*_TOKEN.findall(code), ""])
    found = reader.expression()
    if reader.next or code.count("(") != code.count(")") or code.count("[") != code.count("]"):
        raise ValueError(f"not a C expression: {code}")
    return found


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
                name, offset = (self.text(each) for each in operands[0][1:])
                if (symbol := self.symbols(name, offset)) is not None:
                    return _Text(symbol, _POSTFIX)
                return _Text(name if offset == "0" else f"&{name}[{offset}]", _UNARY)
            case _ if len(operands) == 1:
                return _Text(f"{kind}{self.printed(operands[0]).within(_UNARY)}", _UNARY)
            case _:
                return _join(self.printed(operands[0]), str(kind), self.printed(operands[1]))

    def _call(self, function: Expression, *given: Expression) -> _Text:
        arguments = [self.text(each) for each in given]
        if function == PLACE_OF:
            return _Text(self.symbols(*arguments) or " + ".join(arguments), _POSTFIX)
        return _Text(f"{self.text(function)}({', '.join(arguments)})", _POSTFIX)

    def _cast(self, kind: Expression, value: Expression) -> _Text:
        printed = self.printed(value)
        if value[:2] == ("()", PLACE_OF):
            return printed
        plain = str(kind).rstrip("*")
        stars = str(kind)[len(plain) :]
        return _Text(f"({plain}{' ' + stars if stars else ''}){printed.within(_UNARY)}", _UNARY)


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
