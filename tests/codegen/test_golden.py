"""The C of one small net, as text.

After an intended change: PYTHONPATH=kit:tests python tests/codegen/test_golden.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from net.small_nets import image_net
from npukit import __version__
from npukit.accel.engines import assign_engines, engines_of
from npukit.board.board import load_board
from npukit.codegen.generate import generate
from npukit.plan.planner import plan_network

GOLDEN = Path(__file__).parent / "golden"
BOARDS = ("mps2-an386", "pe-mesh")


def generated(board_name: str) -> dict[str, str]:
    """Text of every generated file, without the version."""
    board = load_board(board_name)
    engines = engines_of(board)
    net = assign_engines(image_net(), engines)
    (sources,) = generate(net, plan_network(net, board, engines, max_pes=1), board, engines, bytes(16))
    return {name: text.replace(__version__, "VERSION") for name, text in sources.files.items()}


@pytest.mark.parametrize("board", BOARDS)
def test_the_generated_text_is_the_same_as_ever(board: str) -> None:
    assert generated(board) == {path.name: path.read_text() for path in (GOLDEN / board).iterdir()}


def test_the_same_plan_gives_the_same_bytes() -> None:
    assert generated("pe-mesh") == generated("pe-mesh")


if __name__ == "__main__":
    for board in BOARDS:
        (GOLDEN / board).mkdir(parents=True, exist_ok=True)
        for name, text in generated(board).items():
            (GOLDEN / board / name).write_text(text)
