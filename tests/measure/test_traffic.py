"""Energy is estimated where the board file gives figures, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.board.board import Energy, load_board
from npukit.measure.traffic import estimated_nanojoules, link_bytes

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
ENERGY = Energy(pj_per_mac=1.0, pj_per_instruction=20.0, pj_per_byte_hop=2.0)


def test_products_instructions_and_bytes_are_what_is_counted(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    net, plan, board = built.net(), built.plan(), load_board("pe-mesh")
    moved = sum(link_bytes(board, net, plan).values())
    products = sum(op["macs"] for op in built.manifest.summary["ops"])
    assert moved > 0
    assert estimated_nanojoules(board, net, plan, 1000) is None
    charged = board.model_copy(update={"energy": ENERGY})
    assert estimated_nanojoules(charged, net, plan, 1000) == pytest.approx((products + 20_000 + 2 * moved) / 1000)


def test_results_show_themselves_in_a_notebook(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=1)
    found, measured = api.validate(built.folder, cases=1), api.bench(built.folder, frames=1)
    assert "1 cases on emulator: equal bit for bit" in found._repr_html_()
    assert f"{measured.latency_cycles:,} cycles" in measured._repr_html_()
    assert '<td style="text-align: left">conv2d_0</td>' in built._repr_html_()
