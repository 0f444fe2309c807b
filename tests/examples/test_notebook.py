"""The example notebook: each cell runs, in order, and four results are tables."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from helpers import CHECKOUT

DIGITS = CHECKOUT / "examples" / "digits"


def cells() -> list[str]:
    notebook = json.loads((DIGITS / "digits.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does. Returns the result shown: the value of the cell's last line."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if isinstance(last, ast.Expr) else None


@pytest.mark.exhaustive
def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(DIGITS)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {}
    results = [shown(cell, names) for cell in cells()]
    tables = [result for result in results if hasattr(result, "_repr_html_")]
    assert len(tables) == 4
    assert all("<table>" in table._repr_html_() for table in tables)
    assert names["validated"].passed
    assert names["validated"].accuracy > 0.9
    assert "of the labels are right" in names["validated"]._repr_html_()
    assert names["fitted"].pes_used == 4
    with pytest.raises(AttributeError):
        _ = names["fitted"].frobnicated
    assert "predicted" in dir(names["fitted"])


def test_no_results_are_kept_in_it() -> None:
    """Stored outputs would become stale, and would contain names of the machine where they were made."""
    notebook = json.loads((DIGITS / "digits.ipynb").read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
