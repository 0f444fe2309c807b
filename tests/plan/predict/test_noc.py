"""Traffic of a frame, and results in notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.plan.predict.noc import link_bytes

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def test_bytes_travel_over_links_where_there_are_several_pes(tmp_path: Path) -> None:
    alone, spread = (shared_build(DIGITS, tmp_path / str(pes), pes=pes) for pes in (1, 4))
    assert not link_bytes(alone.board, alone.net(), alone.plan())
    assert sum(link_bytes(spread.board, spread.net(), spread.plan()).values()) > 0


@pytest.mark.exhaustive
def test_results_show_themselves_in_a_notebook(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=1)
    found, measured = api.validate(built.folder, cases=1), api.bench(built.folder, frames=1)
    assert "1 cases on emulator: equal bit for bit" in found._repr_html_()
    assert f"{measured.latency_cycles:,} cycles" in measured._repr_html_()
    assert '<td style="text-align: left">conv2d_0</td>' in built._repr_html_()
