from __future__ import annotations

import re
import tomllib

import pytest

from helpers import CHECKOUT
from npukit.errors import NpukitError
from npukit.tools import EXTRAS, PACKAGES, find_tools


def test_doctor_knows_every_dependency() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert set(map(name_of, project["dependencies"])) == set(PACKAGES)


def test_doctor_knows_every_extra_that_a_verb_needs() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = {extra for extra, _ in EXTRAS.values()}
    assert {name_of(each): extra for extra in needed for each in extras[extra]} == {
        n: e for n, (e, _) in EXTRAS.items()
    }


def name_of(requirement: str) -> str:
    return re.split(r"[=<>]", requirement)[0]


def test_required_tools_come_first() -> None:
    required = [tool.required for tool in find_tools()]
    assert required == sorted(required, reverse=True)


def test_an_emulator_that_does_not_start_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(board: object, images: object) -> None:
        raise NpukitError("the emulator cannot start: no compiler")

    monkeypatch.setattr("npukit.emulator.builtin.Emulator", broken)
    emulator = next(tool for tool in find_tools() if tool.name == "built-in emulator")
    assert not emulator.found
    assert emulator.how_to_get == "the emulator cannot start: no compiler"


def test_the_emulator_starts_here() -> None:
    assert next(tool for tool in find_tools() if tool.name == "built-in emulator").found
