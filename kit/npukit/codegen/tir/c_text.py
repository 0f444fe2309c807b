"""Clean-up of the C from TVM's code generator."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import lru_cache

from npukit.codegen.tir.c_expressions import Symbols, tidy_expression

_FUNCTION = re.compile(r"^TVM_DLL [\w ]+?\*? (\w+)\([^\n]*\) \{\n(.*?)^\}", re.M | re.S)
_LOOP = re.compile(r"for \((\w+) (\w+) = (.*); \2 < (.*); \+\+\2\) \{")
_BRANCH = re.compile(r"if \((.*)\) \{")
_SCALAR = re.compile(r"(\w+) (\w+)\[1\];")
_DECLARATION = re.compile(r"\w+ (?:\w+(?:\[\d+\])?|\*\w+ = \(.*\)\(work \+ \d+\));")
_RETURN = re.compile(r"return (.*);")
_ASSIGNMENT = re.compile(r"((?:\w+ )?\w+(?:\[.*\])?) = (.*);")

LINE = 120


def wrapped(text: str) -> str:
    """The text with long lines broken at spaces."""

    def wrap(line: str) -> str:
        indent = line[: len(line) - len(line.lstrip())]
        wrapper = textwrap.TextWrapper(LINE, indent, indent + "    ", break_long_words=False, break_on_hyphens=False)
        return wrapper.fill(line.strip())

    return "\n".join(wrap(line) if len(line) > LINE else line for line in text.splitlines())


def function_bodies(source: str, symbols: Symbols = lambda name, offset: None) -> dict[str, str]:
    """The statements of each function in TVM's output, by name, tidied and indented once."""
    return {name: wrapped("\n".join(_tidied(body.splitlines(), symbols))) for name, body in _FUNCTION.findall(source)}


@lru_cache(maxsize=1024)
def tidied_body(body: str) -> str:
    """The tidied statements of one function, cached: tiles of equal blocks repeat the same text."""
    return wrapped("\n".join(_tidied(body.splitlines(), lambda name, offset: None)))


def _tidied(lines: Sequence[str], symbols: Symbols) -> Iterator[str]:
    """Turn arrays of one element into variables. Variables of a single block are declared at their first assignment."""
    renamed: dict[str, str] = {}
    undeclared: dict[str, str] = {}
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
