"""The op that `docs/architecture.md` adds: its blocks, applied to a copy of npukit, pass the tests of a kind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from textwrap import dedent

from helpers import CHECKOUT

STEP = re.compile(r"^### \d\. [^`\n]*`(?P<file>[\w/.]+)`\n\n(?P<code>(?:    .*\n|\n)+)", re.MULTILINE)
MOST_FILES = 5


def steps() -> dict[str, str]:
    """The code of each step of the page, by file."""
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    return {found["file"]: dedent(found["code"]).rstrip() + "\n" for found in STEP.finditer(page)}


def copy_of_npukit(folder: Path) -> None:
    """The kit and the tests, beside links to everything else."""
    for name in ("kit", "tests"):
        copytree(CHECKOUT / name, folder / name, ignore=ignore_patterns("__pycache__"))
    for path in CHECKOUT.iterdir():
        if path.name not in ("kit", "tests") and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)


def test_the_pages_op_is_added_in_five_files(tmp_path: Path) -> None:
    copy_of_npukit(tmp_path)
    added = steps()
    assert len(added) == MOST_FILES
    for file, code in added.items():
        before = (tmp_path / file).read_text() + "\n\n" if (tmp_path / file).exists() else ""
        (tmp_path / file).write_text(before + code)
    chosen = ("tests/net/test_specs.py", "tests/codegen/tir/test_kernels.py", "tests/frontend/test_smallest.py")
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "0",
            *chosen,
            "-k",
            "smallest or kernel_and_a_test or spec_and_a_kernel",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'kit'}:{tmp_path / 'tests'}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "6 passed" in found.stdout, found.stdout[-2000:]
