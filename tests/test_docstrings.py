"""Docstrings begin with a noun phrase or a verb, never with a genitive or a clause without a noun.

Each constant with a number in the planner has a docstring.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from helpers import CHECKOUT

PACKAGE = CHECKOUT / "kit/npukit"
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
NO_SUBJECT = re.compile(
    r"(and|as|at|beside|by|for|from|how|if|in|nobody|of|on|or|so|somebody|than|that|those|to|what|when|where|whether|"
    r"which|who|whoever|whom|whose|with|without)\b",
    re.IGNORECASE,
)

NUMBERS = re.compile(r"_?[A-Z][A-Z0-9_]*(, _?[A-Z][A-Z0-9_]*)*")
"""Names of constants."""


def docstrings(source: str) -> Iterator[str]:
    """Docstrings of a module and of the classes, functions, constants and fields inside."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        body = getattr(node, "body", None)
        for before, after in pairwise(body if isinstance(body, list) else []):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                yield ast.literal_eval(after.value) if isinstance(after.value, ast.Constant) else ""


def without_subject(source: str) -> list[str]:
    """The first lines of docstrings without a subject at their start."""
    texts = (text.strip() for text in docstrings(source) if text.strip())
    return [text.splitlines()[0] for text in texts if NO_SUBJECT.match(text)]


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_name_their_subject(room: str) -> None:
    modules = sorted((PACKAGE / room).rglob("*.py"))
    wrong = {str(path.relative_to(PACKAGE)): found for path in modules if (found := without_subject(path.read_text()))}
    assert not wrong


def test_docstrings_of_the_modules_between_rooms_name_their_subject() -> None:
    found = {path.name: without_subject(path.read_text()) for path in sorted(PACKAGE.glob("*.py"))}
    assert not any(found.values()), found


def test_a_docstring_without_a_subject_is_found_out() -> None:
    source = '"""Of a plan."""\nLEAST = 3\n"""So many."""\n\n\ndef wait() -> None:\n    """Waits for a flag."""\n'
    assert without_subject(source) == ["Of a plan.", "So many."]


def untold_constants(source: str) -> list[str]:
    """Names of a module's numeric constants without a docstring below."""
    body = ast.parse(source).body
    return [
        ast.unparse(target)
        for node, after in pairwise([*body, ast.Pass()])
        if isinstance(node, ast.Assign) and _has_number(node.value)
        for target in node.targets
        if NUMBERS.fullmatch(ast.unparse(target).strip("()"))
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant))
    ]


def _has_number(value: ast.expr) -> bool:
    constants = (each.value for each in ast.walk(value) if isinstance(each, ast.Constant))
    return any(isinstance(each, int | float) and not isinstance(each, bool) for each in constants)


def test_each_number_of_the_planner_says_what_it_is() -> None:
    modules = sorted((PACKAGE / "plan").rglob("*.py"))
    untold = {str(path.relative_to(PACKAGE)): untold_constants(path.read_text()) for path in modules}
    assert not {path: names for path, names in untold.items() if names}


def test_a_number_that_says_nothing_is_found_out() -> None:
    assert untold_constants('LEAST = 3\nMOST, OTHER = 4, 5\n"""The most."""\nNAME = "x"\n') == ["LEAST"]
