"""`import npukit` offers the kit as functions, and imports nothing heavy until the first use."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import npukit
from helpers import CHECKOUT
from npukit import api
from npukit.progress import Silent, visible

FUNCTIONS = {
    name
    for name, value in vars(api).items()
    if inspect.isfunction(value) and value.__module__ == api.__name__ and not name.startswith("_")
}


def test_every_function_of_the_api_is_at_the_top() -> None:
    assert {"bench", "build", "fit", "flash", "load", "run", "validate"} <= FUNCTIONS
    assert all(getattr(npukit, name) is getattr(api, name) for name in (*FUNCTIONS, "NpukitError", "Options"))
    assert not hasattr(npukit, "frobnicate")
    assert not hasattr(npukit, "load_board"), "what the api itself imports is not part of it"


def test_completion_shows_the_verbs() -> None:
    assert {*FUNCTIONS, "Network", "NpukitError", "Options"} <= set(dir(npukit)) <= {*api.__all__, "__version__"}


@pytest.mark.exhaustive
def test_the_examples_of_the_verbs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    monkeypatch.chdir(tmp_path)
    names = {"npukit": npukit, "pictures": np.load("examples/digits/digits.npz")}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    told = [(name, inspect.getdoc(getattr(api, name)) or "") for name in ("build", "fit", "validate", "run", "bench")]
    examples = [parser.get_doctest(text, names, name, None, None) for name, text in told]
    assert all(each.examples for each in examples)
    for each in examples:
        each.globs = names
        runner.run(each, clear_globs=False)
    assert runner.summarize(verbose=False).failed == 0


def test_a_notebook_shows_stages_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[str]()
    display = SimpleNamespace(update=lambda told, raw: lines.append(told["text/plain"]))
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    shell = ModuleType("IPython.display")
    shell.display = lambda text, display_id: display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", shell)
    progress = visible(None)
    progress.stage("import")
    assert list(progress.track([7, 8, 9], "run")) == [7, 8, 9]
    assert lines == ["0 s  import", "0 s  run: 0 of 3", "0 s  run: 3 of 3"]
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert isinstance(visible(None), Silent)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, npukit; npukit.build, npukit.validate; sys.exit(bool({'tvm', 'torch', 'onnx'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT / "kit", timeout=60, check=False).returncode == 0


def test_no_module_hides_a_function() -> None:
    """A module with a function's name would replace the function once it is imported."""
    package = CHECKOUT / "kit/npukit"
    assert not [name for name in FUNCTIONS if (package / f"{name}.py").exists() or (package / name).exists()]
