"""How far a parameter is passed on, as counted by benchmarks/house/house.py."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.house.house_walks import Walks

PACKAGE = Path("kit/npukit")
FIRST = """
from npukit.second import Kept, last as end

def begin(board, wish):
    return middle(wish, board=board)

def middle(told, board):
    print(told)
    return Kept(told).go() + end(told + 1) + len(board)
"""
SECOND = """
class Kept:
    def __init__(self, value):
        self._value = value

    def go(self):
        return self._gone(1, by=self._value)

    def _gone(self, count, by):
        return count * by

    def other(self):
        return 0

def last(value):
    return value
"""


def walked(start: str, parameter: str) -> set[str]:
    modules = {PACKAGE / "first.py": ast.parse(FIRST), PACKAGE / "second.py": ast.parse(SECOND)}
    walks = Walks(modules, PACKAGE)
    (body,) = {each for each, _ in walks.parameters() if each.node.name == start}
    return {each.node.name for each in walks.walk(body, parameter)}


def test_a_walk_goes_by_calls_and_by_what_objects_keep() -> None:
    assert walked("begin", "wish") == {"begin", "middle", "__init__", "_gone"}


def test_a_walk_ends_where_a_parameter_is_not_given_on() -> None:
    assert walked("begin", "board") == {"begin", "middle"}
    assert walked("last", "value") == {"last"}
