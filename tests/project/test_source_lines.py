"""Source lines linked from the report, and the licence line of every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from npukit.library.sources import library
from npukit.project.build_folder import Build

MODEL = DIGITS / "digits_int8.tflite"
LICENCE = "SPDX-License-Identifier: Apache-2.0"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return shared_build(MODEL, tmp_path_factory.mktemp("digits") / "build")


def called(build: Build, op: str) -> list[str]:
    """The statements at an op's lines."""
    (row,) = (row for row in build.manifest.summary["ops"] if row["name"] == op)
    places = (place.rpartition(":") for place in row["sources"])
    return [(build.folder / "project" / file).read_text().splitlines()[int(line) - 1] for file, _, line in places]


@pytest.mark.exhaustive
def test_an_op_on_the_accelerator_leads_to_its_call(digits: Build) -> None:
    in_c, in_tir = called(digits, "conv2d_2")
    assert "mac_array_run_one(" in in_c
    assert 'call_extern("int32", "mac_array_run_one"' in in_tir


def test_an_op_on_the_core_leads_to_its_kernel(digits: Build) -> None:
    in_c, in_tir = called(digits, "softmax_0")
    assert "softmax_by_table" in in_c
    assert "softmax_by_table" in in_tir


def test_an_op_without_work_has_no_line(digits: Build) -> None:
    assert called(digits, "reshape_0") == []


def test_the_report_links_the_files(digits: Build) -> None:
    assert 'href="project/roles/0/net/net.tir"' in (digits.folder / "report.html").read_text()


def without_licence(files: dict[str, str]) -> list[str]:
    code = (".c", ".h", ".S", ".ld", ".zig", ".cs", "Makefile", "CMakeLists.txt")
    return [name for name, text in files.items() if name.endswith(code) and LICENCE not in text.partition("\n")[0]]


def test_each_file_of_a_project_names_its_licence(digits: Build) -> None:
    project = digits.folder / "project"
    files = {str(path.relative_to(project)): path for path in project.rglob("*") if path.is_file()}
    read = {name: path.read_text(errors="replace") for name, path in files.items()}
    assert len(read) > 40
    assert without_licence(read) == []


def test_each_file_of_a_library_names_its_licence(tmp_path: Path) -> None:
    build = shared_build(MODEL, tmp_path / "build", "mps2-an386")
    assert without_licence(dict(library(build, portable=True).files)) == []
    assert without_licence(dict(library(build, portable=False).files)) == []
