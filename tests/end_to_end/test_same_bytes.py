"""The same input gives the same bytes, in every folder and by hand."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, build, shared_build
from helpers import first_of, make_by_hand
from npukit.project.build_folder import load_build
from object_cache import compiled_anew


def files_of(folder: Path) -> dict[str, Path]:
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([16, 1]))
def test_two_builds_in_two_folders(tmp_path: Path, pes: int) -> None:
    folders = [tmp_path / "out", tmp_path / "somewhere else" / "built"]
    shared_build(DIGITS / "digits_int8.tflite", folders[0], pes=pes, toolchain="zig")
    with compiled_anew():
        build(DIGITS / "digits_int8.tflite", folders[1], pes=pes, toolchain="zig")
    first, second = (files_of(folder) for folder in folders)
    assert first.keys() == second.keys()
    assert [name for name in first if not filecmp.cmp(first[name], second[name], shallow=False)] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([4, 1]))
def test_the_project_builds_by_hand_to_the_same_bytes(tmp_path: Path, pes: int) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=pes)
    shutil.copytree(built.folder / "project", tmp_path / "by hand")
    make_by_hand(tmp_path / "by hand")
    for ours in (built.folder / "images").iterdir():
        assert ours.read_bytes() == (tmp_path / "by hand/build" / ours.name).read_bytes()


def test_memory_in_the_plan_is_that_of_the_image(tmp_path: Path) -> None:
    built = shared_build(DIGITS / "digits_int8.tflite", tmp_path / "out", pes=4)
    size = built.board.memory_for("activations").size
    assert len(built.plan().pes) > 1
    for pe in load_build(tmp_path / "out").plan().pes:
        use = pe.memory
        assert use.free == size - use.code - use.constants - use.activations - use.stack >= 0
