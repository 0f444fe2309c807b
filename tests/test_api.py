"""`import npukit` gives the kit as functions, and costs nothing until one is used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import npukit
from helpers import CHECKOUT
from npukit import api

FUNCTIONS = {
    name
    for name, value in vars(api).items()
    if inspect.isfunction(value) and value.__module__ == api.__name__ and not name.startswith("_")
}


def test_every_function_of_the_api_is_at_the_top() -> None:
    assert {"bench", "build", "fit", "flash", "load", "run", "validate"} <= FUNCTIONS
    assert all(getattr(npukit, name) is getattr(api, name) for name in (*FUNCTIONS, "Options"))
    assert not hasattr(npukit, "frobnicate")
    assert not hasattr(npukit, "load_board"), "what the api itself imports is not part of it"


def test_completion_shows_the_verbs() -> None:
    assert {"bench", "build", "run", "validate"} <= set(dir(npukit))


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, npukit; npukit.build, npukit.validate; sys.exit(bool({'tvm', 'torch', 'onnx'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT / "kit", timeout=60, check=False).returncode == 0


def test_no_module_hides_a_function() -> None:
    """A module of a function's name would take its place once it is imported."""
    package = CHECKOUT / "kit/npukit"
    assert not [name for name in FUNCTIONS if (package / f"{name}.py").exists() or (package / name).exists()]
