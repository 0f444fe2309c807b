"""Every constant in the tables of tuned constants exists."""

from __future__ import annotations

import re
from importlib import import_module

from benchmarks.large.planner_constants import SEARCHES

from helpers import CHECKOUT

TUNED = {name for search in SEARCHES.values() for name in search.tuned}


def test_each_has_another_value_to_be_compared_with() -> None:
    for search in SEARCHES.values():
        for name, values in search.tuned.items():
            module, _, constant = name.rpartition(".")
            assert values
            assert getattr(import_module(f"npukit.{search.room}.{module}"), constant) not in values


def test_the_rows_of_the_table_are_theirs() -> None:
    table = (CHECKOUT / "benchmarks/large/planner_constants.md").read_text()
    rows = set(re.findall(r"^\| `([^`]+)`", table, re.MULTILINE))
    assert rows
    assert rows <= TUNED
