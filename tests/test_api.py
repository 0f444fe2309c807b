"""`import npukit` gives the kit as functions, and costs nothing until one is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import npukit
from helpers import CHECKOUT
from npukit import api


def test_every_function_of_the_api_is_at_the_top() -> None:
    own = {name for name, value in vars(api).items() if inspect.isfunction(value) and value.__module__ == api.__name__}
    assert {name for name in own if not name.startswith("_")} | {"Options"} == set(npukit.__all__)
    assert all(getattr(npukit, name) is getattr(api, name) for name in npukit.__all__)
    assert not hasattr(npukit, "frobnicate")


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, npukit; npukit.build, npukit.validate; sys.exit(bool({'tvm', 'torch', 'onnx'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT / "kit", timeout=60, check=False).returncode == 0


def test_no_module_hides_a_function() -> None:
    """A module of a function's name would take its place once it is imported."""
    assert not [name for name in npukit.__all__ if (CHECKOUT / f"kit/npukit/{name}.py").exists()]
