"""The rows of a frame, predicted and measured, add up to the frame in every table."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from end_to_end.builds import shared_build
from helpers import CHECKOUT, first_of
from npukit import api
from npukit.cli.main import app
from npukit.measure.bench import Bench
from npukit.plan.predict.frame_table import MESSAGES, SETUP
from npukit.project.build_folder import Build
from npukit.report.page import render

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
BUILDS = {
    "4 PEs": {"pes": 4},
    "the core alone": {"pes": 1, "engine": "cpu"},
    "batches": {"pes": 4, "objective": "throughput"},
    "1 PE": {"pes": 1},
    "16 PEs": {"pes": 16},
}


@pytest.fixture(scope="module", params=first_of([*BUILDS], 3))
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Bench]:
    folder = tmp_path_factory.mktemp("digits") / "out"
    built = shared_build(DIGITS, folder, toolchain="zig", **BUILDS[request.param])
    return built, api.bench(built, frames=1)


@pytest.mark.exhaustive
def test_the_rows_of_a_frame_add_up(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    assert bench.frame is not None
    assert sum(bench.frame.values()) == bench.latency_cycles
    told = {row["name"]: row["cycles"] for row in built.manifest.summary["frame"]}
    assert sum(told.values()) == built.manifest.summary["predicted"]["latency_cycles"]
    assert list(told) == list(bench.frame)
    assert min(told.values()) >= 0


@pytest.mark.exhaustive
def test_layers_that_one_pe_computes_take_what_they_take(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    assert bench.frame is not None
    if built.plan().frames == 1 and len(bench.pes) == 1:
        layers = {layer.name: layer.cycles for layer in bench.layers}
        spent = bench.frame
        assert {name: spent[name] for name in layers} == layers
        assert spent[MESSAGES] == 0


def test_rows_and_shares_of_the_report_add_up(measured: tuple[Build, Bench]) -> None:
    """With measured results, and without."""
    built, bench = measured
    for results, cycles in (
        ({"bench": bench.to_json()}, bench.latency_cycles),
        ({}, built.manifest.summary["predicted"]["latency_cycles"]),
    ):
        cells = re.findall(r'<td class="n">([\d,]+)</td><td class="bar">.*?<small>([\d.]+) %', render(built, results))
        spent = [int(number.replace(",", "")) for number, _ in cells]
        assert sum(spent) == cycles
        assert spent == sorted(spent, reverse=True), "the largest share comes first"
        assert sum(float(share) for _, share in cells) == pytest.approx(100, abs=0.1 * len(cells))


@pytest.mark.exhaustive
def test_the_tables_of_the_command_line_add_up(measured: tuple[Build, Bench]) -> None:
    built, bench = measured
    options = built.manifest.options
    wishes = [f"--pes={options['pes']}", f"--objective={options['objective']}"]
    wishes += [f"--engine={options['engine']}"] if options["engine"] else []
    predicted = built.manifest.summary["predicted"]["latency_cycles"]
    for arguments, cycles in (
        (["fit", str(DIGITS), *wishes], predicted),
        (["bench", str(built.folder), "--frames=1"], bench.latency_cycles),
    ):
        shown = CliRunner().invoke(app, arguments).stdout
        assert sum(column(shown)) == cycles


def column(shown: str) -> list[int]:
    """The numbers below "cycles", from the first layer down to the row of setup."""
    lines = shown.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("layer "))
    last = next(number for number, line in enumerate(lines) if line.startswith(SETUP))
    end = lines[first].index(" cycles ") + len(" cycles")
    cells = [line[:end] for line in lines[first + 1 : last + 1]]
    return [int(cell.split()[-1].replace(",", "")) for cell in cells if cell[-1:].isdigit() and len(cell) == end]
