"""Expressions and statements keep their meaning when they are tidied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npukit.codegen.tir.c_text import function_bodies, tidy_expression
from npukit.errors import NpukitError

EXAMPLES = {
    "((a + b))": "a + b",
    "((a * 2) + (b * 3))": "a * 2 + b * 3",
    "((a + b) * c)": "(a + b) * c",
    "(a - (b - c))": "a - (b - c)",
    "(a + -3)": "a - 3",
    "(a - -3)": "a + 3",
    "((a + b) << c)": "(a + b) << c",
    "((a & b) == 0)": "(a & b) == 0",
    "(0 - (a + b))": "-(a + b)",
    "((int8_t)(x[((i * 4) + 1)]))": "(int8_t)x[i * 4 + 1]",
    "((a < 0) ? (b + 1) : c)": "a < 0 ? b + 1 : c",
    "(&(x[0]))": "x",
    "(&(x[(8)]))": "&x[8]",
    "f((a), (b + 1))": "f(a, b + 1)",
}


@pytest.mark.parametrize(("given_text", "wanted"), EXAMPLES.items())
def test_tidied(given_text: str, wanted: str) -> None:
    assert tidy_expression(given_text) == wanted


def _wrapped(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "&", "|", "^", "<<", "<", "=="])
    binary = st.tuples(children, operators, children).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")
    choice = st.tuples(children, children, children).map(lambda parts: "({} ? {} : {})".format(*parts))
    return binary | choice


EXPRESSIONS = st.recursive(st.sampled_from(["1", "2", "3", "a", "b"]), _wrapped, max_leaves=12)


@given(EXPRESSIONS)
def test_tidying_changes_no_value(text: str) -> None:
    """Read again, the tidied text is the same tree."""
    assert _tree(tidy_expression(text)) == _tree(text)


@given(EXPRESSIONS)
def test_tidying_twice_is_tidying_once(text: str) -> None:
    once = tidy_expression(text)
    assert tidy_expression(once) == once


def _tree(text: str) -> object:
    return _Reader(text).whole()


class _Reader:
    """A second reader of C, level by level down its table of precedence, straight to tuples."""

    LEVELS = (("|",), ("^",), ("&",), ("==",), ("<",), ("<<",), ("+", "-"), ("*",))

    def __init__(self, text: str) -> None:
        spaced = text.replace("(", " ( ").replace(")", " ) ").replace("-(", "- (")
        self.tokens = spaced.replace("-a", "- a").replace("-b", "- b").replace("-1", "- 1").split()
        self.tokens = [part for token in self.tokens for part in _split_sign(token)]
        self.at = 0

    def whole(self) -> object:
        tree = self.choice()
        assert self.at == len(self.tokens)
        return tree

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def choice(self) -> object:
        condition = self.level(0)
        if self.peek() != "?":
            return condition
        self.take()
        yes = self.choice()
        assert self.take() == ":"
        return ("?", condition, yes, self.choice())

    def level(self, depth: int) -> object:
        if depth == len(self.LEVELS):
            return self.atom()
        left = self.level(depth + 1)
        while self.peek() in self.LEVELS[depth]:
            left = (self.take(), left, self.level(depth + 1))
        return left

    def atom(self) -> object:
        token = self.take()
        if token == "-":
            return ("-", "0", self.atom())
        if token == "(":
            inner = self.choice()
            assert self.take() == ")"
            return inner
        return token


def _split_sign(token: str) -> list[str]:
    return ["-", token[1:]] if len(token) > 1 and token[0] == "-" else [token]


def test_arrays_of_one_become_variables() -> None:
    source = """TVM_DLL void f(int8_t* x) {
  int32_t sum_ptr[1];
  sum_ptr[0] = 0;
  for (int32_t i = 0; i < 4; ++i) {
    sum_ptr[0] = (sum_ptr[0] + ((int32_t)x[(i + 1)]));
  }
  x[0] = ((int8_t)sum_ptr[0]);
}
"""
    assert function_bodies(source)["f"].splitlines() == [
        "    int32_t sum = 0;",
        "    for (int32_t i = 0; i < 4; i++) {",
        "        sum += (int32_t)x[i + 1];",
        "    }",
        "    x[0] = (int8_t)sum;",
    ]


@pytest.mark.parametrize("text", ["!" * 10_000 + "a", "a[" * 10_000 + "0" + "]" * 10_000])
def test_an_expression_that_is_too_deep_is_refused(text: str) -> None:
    with pytest.raises(NpukitError, match="nests its expressions too deeply"):
        tidy_expression(text)


def test_what_nothing_reads_is_left_out() -> None:
    """TVM leaves intermediate results that folded away."""
    loops = ("for (int32_t i = 0; i < 2; ++i) {", "for (int32_t j = 0; j < 2; ++j) {", "a_ptr[0] = x[i];", "}", "}")
    lines = ("float a_ptr[1];", "float b_ptr[1];", *loops, "b_ptr[0] = x[1];", "y[0] = b_ptr[0];")
    source = "TVM_DLL int32_t f(float* x) {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    assert function_bodies(source)["f"].split("\n") == ["    float b = x[1];", "    y[0] = b;"]
