"""All code in the repository was written for npukit, and writes the same bytes on every system."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from helpers import CHECKOUT

LICENCE_TEXTS = {Path("LICENSE"), Path("kit/npukit_emulator/COPYING")}
"""The Apache License, and the GNU General Public License of the emulator's worker."""

WORKER = Path("kit/npukit_emulator")
BINARY = {
    Path("examples/digits") / name
    for name in ("digits.npz", "digits_float.onnx", "digits_int8.tflite", "digits_qdq.onnx")
}
"""Made by examples/digits."""

RIGHTS = re.compile(
    r"copyright|©|\(c\) *(19|20)\d\d|all rights reserved|permission is hereby|redistribution and use"
    r"|without warranty|@author|licen[cs]ed under|taken from http",
    re.IGNORECASE,
)
IDENTIFIER = re.compile(r"^\W*SPDX-License-Identifier: (\S.*?)(?: \*/)?$", re.MULTILINE)
LICENCE_NAMES = re.compile(r"(licen[cs]e|copying|notice|patents|authors)(\.\w+)?", re.IGNORECASE)
OTHERS_FOLDERS = {"third_party", "thirdparty", "3rdparty", "vendor", "external", "contrib", "deps"}


@cache
def files() -> tuple[Path, ...]:
    """Files tracked by git, and untracked files not ignored by git. This module is left out, because it contains the
    forbidden words."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(asked, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(Path(name) for name in names if (CHECKOUT / name).is_file() and CHECKOUT / name != Path(__file__))


def text_of(file: Path) -> str | None:
    try:
        return (CHECKOUT / file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def test_nobody_elses_rights_are_claimed_in_it() -> None:
    texts = {file: text_of(file) or "" for file in files() if file not in LICENCE_TEXTS}
    assert {file: found[0] for file, text in texts.items() if (found := RIGHTS.search(text))} == {}


def test_the_gpl_is_named_in_the_emulators_worker_alone() -> None:
    named = {file: IDENTIFIER.findall(text_of(file) or "") for file in files()}
    of_the_worker = {"GPL-2.0-only", "Apache-2.0 OR GPL-2.0-only"}
    for file, identifiers in named.items():
        assert set(identifiers) <= (of_the_worker if file.is_relative_to(WORKER) else {"Apache-2.0"}), file


def test_there_are_two_licences_and_no_folder_of_others_code() -> None:
    assert {file for file in files() if LICENCE_NAMES.fullmatch(file.name)} == LICENCE_TEXTS
    assert {file for file in files() if OTHERS_FOLDERS & set(file.parts)} == set()


def test_nothing_is_there_that_cannot_be_read_but_the_examples_models() -> None:
    assert {file for file in files() if text_of(file) is None} == BINARY


@pytest.mark.parametrize(
    "line", ["Copyright 2019 somebody", "/* (c) 2004 A. Body */", "Licensed under the MIT licence", "@author somebody"]
)
def test_a_line_of_somebody_elses_is_noticed(line: str) -> None:
    assert RIGHTS.search(line)


@pytest.mark.exhaustive
def test_text_is_read_and_written_the_same_way_on_every_system() -> None:
    """Every call names the file's encoding, and when writing the line ending too."""
    wanted = {"read_text": {"encoding"}, "write_text": {"encoding", "newline"}}
    for path in (path for path in files() if path.suffix == ".py" and path.parts[0] == "kit"):
        for call in (node for node in ast.walk(ast.parse((CHECKOUT / path).read_text())) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            assert wanted.get(name, set()) <= {keyword.arg for keyword in call.keywords}, f"{path}:{call.lineno}"


ELSEWHERE = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")


@pytest.mark.exhaustive
def test_no_module_of_one_system_alone_is_imported_where_another_would_fail() -> None:
    """A module missing on Windows is imported inside the function where it is needed."""
    for path in (path for path in files() if path.suffix == ".py" and path.parts[0] == "kit"):
        tree = ast.parse((CHECKOUT / path).read_text())
        names = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
        names |= {str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not names & {*ELSEWHERE}, path


def test_the_slow_tests_are_there() -> None:
    """Files, functions and pages named in `tests/slow.txt`."""
    names = re.findall(r"^(\S+?)::(\w+)(?:\[(.*)\])?$", (CHECKOUT / "tests/slow.txt").read_text(), re.MULTILINE)
    assert len(names) > 100
    for file, function, case in names:
        assert f"def {function}(" in (CHECKOUT / file).read_text(), f"{file}::{function}"
        pages = (CHECKOUT / "docs" / case, CHECKOUT / case)
        assert not case.endswith(".md") or any(page.is_file() for page in pages), f"{function}[{case}]"
