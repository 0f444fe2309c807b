from __future__ import annotations

import re
import tomllib

from helpers import CHECKOUT
from npukit.tools import PACKAGES, find_tools


def test_doctor_knows_every_dependency() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[=<>]", requirement)[0] for requirement in project["dependencies"]}
    assert names == set(PACKAGES)


def test_required_tools_come_first() -> None:
    required = [tool.required for tool in find_tools()]
    assert required == sorted(required, reverse=True)
