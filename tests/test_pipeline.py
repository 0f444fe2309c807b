"""A linker that finds the images larger than planned: the build plans again with less memory, or refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from end_to_end.builds import DIGITS
from npukit import pipeline
from npukit.board.board import load_board
from npukit.options import Options
from npukit.pipeline import build_folder, plan_on
from npukit.progress import Silent
from npukit.project.check import LinkedTooLarge
from npukit.project.files import Project

BOARD = load_board("pe-mesh")
SIZE = BOARD.memory_for("activations").size
MODEL = DIGITS / "digits_int8.tflite"


@pytest.fixture
def planned_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Memory in bytes given to each plan of the test."""
    sizes: list[int] = []

    def noted(board: Any, *others: Any) -> Any:
        sizes.append(board.memory_for("activations").size)
        return plan_on(board, *others)

    monkeypatch.setattr(pipeline, "plan_on", noted)
    return sizes


class Linked(Exception):
    """The end of a build whose link succeeds."""


def _linking(missing: Iterator[int]) -> Callable[..., Any]:
    """A linker whose images exceed the memory by `missing` bytes, one value per link, and then fit."""

    def link(project: Project, *_: Any) -> Any:
        assert project.board.memory_for("activations").size == SIZE
        for size in missing:
            raise LinkedTooLarge(f"image-0 is {size} bytes too large", "SRAM", size)
        raise Linked

    return link


def test_what_linked_programs_lack_is_left_by_a_second_plan(
    planned_for: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pipeline, "build_images", _linking(iter([3000])))
    with pytest.raises(Linked):
        build_folder(MODEL, BOARD, tmp_path / "out", Options(pes=1), Silent())
    assert planned_for == [SIZE, SIZE - 3000 - pipeline.MORE_MISSING]


@pytest.mark.parametrize("missing", [[SIZE - 4096], [64, 64, 64]])
def test_what_no_plan_leaves_is_told_as_the_linker_found_it(
    planned_for: list[int], missing: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pipeline, "build_images", _linking(iter(missing)))
    with pytest.raises(LinkedTooLarge, match=f"{missing[-1]} bytes too large"):
        build_folder(MODEL, BOARD, tmp_path / "out", Options(pes=1), Silent())
    assert len(planned_for) == max(2, len(missing))
    assert not list(tmp_path.iterdir())
