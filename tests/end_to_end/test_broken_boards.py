"""Boards with dead parts and boards of several chips run their plans: every output and tile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from end_to_end.builds import DIGITS
from helpers import first_of
from npukit import api
from npukit.board.board import Grid, load_board
from npukit.pipeline import build_folder
from npukit.progress import Silent

MESHES: dict[str, dict[str, Any]] = {
    "the root's PE is dead": {"dead_pes": (0,)},
    "a PE and a link in the middle are dead": {"dead_pes": (5,), "dead_links": ((9, 10),)},
    "four chips": {"chips": Grid(columns=2, rows=2), "pes": Grid(columns=2, rows=2)},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("mesh", first_of(list(MESHES), 2))
def test_a_board_as_it_is(tmp_path: Path, mesh: str) -> None:
    """benchmarks/mesh/dead_parts.py tries every single PE and link."""
    board = load_board("pe-mesh")
    board = board.model_copy(update={"mesh": board.mesh.model_copy(update=MESHES[mesh])})
    built = build_folder(DIGITS / "digits_int8.tflite", board, tmp_path / "out", api.Options(pes=16), Silent())
    used = {pe.pe for pe in built.plan().pes}
    assert len(used) > 6
    assert used.isdisjoint(board.mesh.dead_pes)
    found = api.validate(built.folder, cases=1)
    assert found.passed
    assert found.tiles_checked == found.cases * sum(len(pe.tiles) for pe in built.plan().pes)
