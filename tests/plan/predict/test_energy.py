"""Energy is estimated only for boards with figures in the board file; the figures equal the fitted figures."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from benchmarks.energy import board_file, fitted, trials

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api
from npukit.board.board import Energy, EnergyLevel, load_board
from npukit.measure.bench import Bench
from npukit.plan.predict.energy import FrameEnergy, FrameWork, frame_energies, frame_work
from npukit.report.costs import costs_of

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
LEVEL = EnergyLevel(volts=1, clock_hz=1_000_000, pe_asleep_uw=3, pj_per_core_cycle=5, pj_per_mac=7)
ENERGY = Energy(
    pe_off_uw=2,
    pj_per_sram_byte=17,
    pj_per_byte_hop=11,
    pj_per_dram_byte=13,
    dram_idle_uw=19,
    uncertainty_percent=15,
    traffic_uncertainty_percent=50,
    level=(LEVEL,),
)
WORK = FrameWork(1000, 4, 2000, 3000, sram_bytes=200, byte_hops=100, dram_bytes=50, drams=2)
BOARD = load_board("pe-mesh").model_copy(update={"energy": ENERGY})


def test_each_part_is_counted_with_its_margin() -> None:
    (found,) = frame_energies(BOARD, WORK)
    traffic = {"SRAM": 1e-6 * 200 * 17, "network": 1e-6 * 100 * 11, "DRAM": 1e-6 * 50 * 13 + 1e-3 * 2 * 19}
    work = {"idle": 1e-3 * (16 * 2 + 4 * 3), "cores": 1e-6 * 2000 * 5, "accelerators": 1e-6 * 3000 * 7}
    assert found.parts == pytest.approx({**work, **traffic}, abs=1e-6)
    assert found.microjoules == pytest.approx(sum(found.parts.values()), abs=1e-5)
    assert found.margin == pytest.approx(0.15 * sum(work.values()) + 0.5 * sum(traffic.values()), abs=1e-5)
    assert found.milliseconds == pytest.approx(1.0)


def test_at_a_rate_a_frame_pays_for_all_of_its_time_and_slow_levels_fall_out() -> None:
    (fast,), (slow,) = frame_energies(BOARD, WORK), frame_energies(BOARD, WORK, frames_per_second=100)
    assert slow.parts["idle"] == pytest.approx(10 * fast.parts["idle"])
    assert slow.parts["cores"] == fast.parts["cores"]
    assert frame_energies(BOARD, WORK, frames_per_second=1001) == ()


def test_a_board_without_figures_gets_no_estimate() -> None:
    assert frame_energies(load_board("mps2-an386"), WORK) == ()
    costs = costs_of(api.fit(DIGITS, board="mps2-an386"))
    assert costs.headings == ("a frame", ">25 MHz")
    assert [row[0] for row in costs.rows] == ["latency", "interval", "SSRAM1", "SSRAM2"]


@pytest.mark.exhaustive
def test_bench_estimates_at_each_voltage_from_what_it_measured(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    measured = api.bench(built.folder, frames=1)
    fast, slow = measured.energy
    assert (fast.clock_hz, slow.clock_hz) == (300_000_000, 150_000_000)
    assert slow.microjoules < fast.microjoules
    assert slow.milliseconds == pytest.approx(2 * fast.milliseconds, rel=1e-3)
    awake = sum(pe.busy for pe in measured.pes)
    work = frame_work(built.board, built.net(), built.plan(), measured.interval_cycles or 0, awake)
    assert work.products == sum(op["macs"] for op in built.manifest.summary["ops"])
    assert list(frame_energies(built.board, work)) == [fast, slow]
    assert Bench.from_json(measured.to_json()).energy == (fast, slow)


def test_time_memory_and_energy_stand_in_one_table(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    costs = costs_of(built.manifest.summary)
    assert costs.headings == ("a frame", ">0.8 V, 300 MHz", ">0.5 V, 150 MHz")
    rows = {row[0]: row[1:] for row in costs.rows}
    assert list(rows) == ["latency", "interval", "SRAM, fullest PE", "energy", "idle energy"]
    parts = [row[0] for row in costs.parts]
    assert parts == ["core energy", "accelerator energy", "SRAM energy", "network energy"], "DRAM takes none"
    assert all("±" in cell for cell in rows["energy"])
    page = (built.folder / "report.html").read_text()
    assert all(f'<th scope="row">{name}</th>' in page for name in rows)


def test_the_board_file_holds_what_the_fit_says() -> None:
    said = Energy.model_validate(tomllib.loads(board_file(fitted()))["energy"])
    assert load_board("pe-mesh").energy == said
    assert all(abs(model / found - 1) < 0.15 for _, found, model in trials(fitted()))


@pytest.mark.exhaustive
def test_the_energy_that_fit_predicts_is_about_what_bench_estimates(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    measured = api.bench(built.folder, frames=1)
    for told, found in zip(built.manifest.summary["energy"], measured.energy, strict=True):
        assert FrameEnergy(**told).volts == found.volts
        assert told["microjoules"] == pytest.approx(found.microjoules, rel=0.1)
