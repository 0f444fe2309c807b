"""A room of the package imports only rooms listed earlier in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import CHECKOUT

PACKAGE = CHECKOUT / "kit" / "npukit"
TABLE = re.compile(r"^\| `(\w+)/` \|", re.MULTILINE)


def table_of_rooms(page: str) -> tuple[str, ...]:
    """Names of the rooms listed on a page of the docs, in the page's order."""
    return tuple(TABLE.findall((CHECKOUT / "docs" / page).read_text()))


ROOMS = table_of_rooms("architecture.md")
PLAN_ROOMS = table_of_rooms("planner.md")
LARGEST_ROOM = 20
FRONT_DOOR = {"api", "pipeline"}
"""Modules above the rooms. Only the command line imports these."""


def imported(module: Path) -> Iterator[str]:
    """Names that a module imports from npukit, without the package's name."""
    for node in ast.walk(ast.parse(module.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if names == ["npukit"] and isinstance(node, ast.ImportFrom):
            names = [f"npukit.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.removeprefix("npukit.") for name in names if name.startswith("npukit."))


@pytest.mark.parametrize(("table", "house"), [(ROOMS, PACKAGE), (PLAN_ROOMS, PACKAGE / "plan")])
def test_every_room_stands_in_the_table_once(table: tuple[str, ...], house: Path):
    assert sorted(table) == sorted(path.parent.name for path in house.glob("*/__init__.py"))


def test_no_room_has_more_modules_than_one_can_look_over():
    rooms = Counter(path.parent for path in PACKAGE.rglob("*.py"))
    assert not {room: count for room, count in rooms.items() if count > LARGEST_ROOM}


@pytest.mark.parametrize("room", PLAN_ROOMS)
def test_a_room_of_the_planner_imports_only_what_stands_before_it(room: str):
    plan = PACKAGE / "plan"
    before = {*PLAN_ROOMS[: PLAN_ROOMS.index(room) + 1]}
    wrong = [
        f"{module.relative_to(plan)} imports {name}"
        for module in sorted((plan / room).rglob("*.py"))
        for name in imported(module)
        if name.startswith("plan.") and name.split(".")[1] not in before
    ]
    assert not wrong


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_stands_before_it(room: str):
    later = {*ROOMS[ROOMS.index(room) + 1 :]} | (FRONT_DOOR if room != ROOMS[-1] else set())
    wrong = [
        f"{module.relative_to(PACKAGE)} imports {name}"
        for module in sorted((PACKAGE / room).rglob("*.py"))
        for name in imported(module)
        if name.split(".")[0] in later
    ]
    assert not wrong
