"""Two builds side by side: their differences, largest first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.project.build_folder import Build
from npukit.report.compare import Pair, render_comparison
from npukit.report.page import RESULTS

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Build]:
    folder = tmp_path_factory.mktemp("compared")
    return shared_build(DIGITS, folder / "four", pes=4), shared_build(DIGITS, folder / "one", pes=1)


def test_the_page_has_both_predictions_and_says_so(builds: tuple[Build, Build]) -> None:
    page = render_comparison(*builds)
    left, right = (build.manifest.summary["predicted"]["latency_cycles"] for build in builds)
    assert f'cycles of latency</th><td class="n">{left:,}</td><td class="n">{right:,}</td>' in page
    assert f"{100 * (right - left) / left:+.1f} %" in page
    assert "Predicted by the cost model" in page


def test_the_time_and_the_energy_of_a_frame_stand_beside_its_cycles(builds: tuple[Build, Build]) -> None:
    page = render_comparison(*builds)
    left, right = (build.manifest.summary for build in builds)
    times = [round(1e9 * each["predicted"]["latency_cycles"] / builds[0].board.core.clock_hz) for each in (left, right)]
    assert f'nanoseconds of it</th><td class="n">{times[0]:,}</td><td class="n">{times[1]:,}</td>' in page
    for old, new in zip(left["energy"], right["energy"], strict=True):
        told = [round(1e3 * each["microjoules"]) for each in (old, new)]
        label = f"nanojoules a frame at {old['volts']:g} V"
        assert f'{label}</th><td class="n">{told[0]:,}</td><td class="n">{told[1]:,}</td>' in page


def test_a_layer_of_one_build_alone_has_an_empty_place(builds: tuple[Build, Build]) -> None:
    page = render_comparison(*builds)
    messages = page.split("waiting for messages</th>")[1].split("</tr>")[0]
    assert '<td class="n"></td>' in messages


def test_measured_figures_stand_where_both_builds_have_them(builds: tuple[Build, Build], tmp_path: Path) -> None:
    four, _ = builds
    measured = api.load(shared_build(DIGITS, tmp_path / "measured", pes=4).folder)
    bench = api.bench(measured.folder, frames=1).to_json()
    (measured.folder / RESULTS).write_text(json.dumps({"bench": bench}))
    assert "Predicted by" in render_comparison(four, measured)
    page = render_comparison(measured, measured)
    assert f"{bench['latency_cycles']:,}" in page
    assert "Measured by" in page


def test_the_verb_writes_where_it_is_told(builds: tuple[Build, Build], tmp_path: Path) -> None:
    page = api.write_report(builds[0].folder, compare=builds[1].folder, output=tmp_path / "both.html")
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("left", "right", "change"), [(100, 50, -50.0), (100, None, None), (None, 3, None), (0, 1, None)]
)
def test_a_change_needs_both_figures(left: int | None, right: int | None, change: float | None) -> None:
    assert Pair("cycles", left, right).change == change
