"""Energy is estimated where the board file gives figures, and nowhere else; the figures are those of the fit."""

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
from npukit.measure.energy import Work, frame_energies, frame_work

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"
LEVEL = EnergyLevel(volts=1, clock_hz=1_000_000, pe_asleep_uw=3, pj_per_core_cycle=5, pj_per_mac=7)
ENERGY = Energy(pe_off_uw=2, pj_per_byte_hop=11, pj_per_dram_byte=13, uncertainty_percent=15, level=(LEVEL,))
WORK = Work(cycles=1000, pes=4, core_cycles=2000, products=3000, byte_hops=100, dram_bytes=50)


def test_standing_and_working_are_what_is_counted() -> None:
    board = load_board("pe-mesh").model_copy(update={"energy": ENERGY})
    (found,) = frame_energies(board, WORK)
    standing = 1e-3 * (16 * 2 + 4 * 3)
    working = 1e-6 * (2000 * 5 + 3000 * 7 + 100 * 11 + 50 * 13)
    assert found.microjoules == pytest.approx(standing + working, abs=1e-6)
    assert found.milliseconds == pytest.approx(1.0)


def test_a_board_without_figures_gets_no_estimate() -> None:
    assert frame_energies(load_board("mps2-an386"), WORK) == ()


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
    assert Bench.from_json(measured.to_json() | {"energy": [vars(each) for each in measured.energy]}).energy == (
        fast,
        slow,
    )


def test_the_board_file_holds_what_the_fit_says() -> None:
    said = Energy.model_validate(tomllib.loads(board_file(fitted()))["energy"])
    assert load_board("pe-mesh").energy == said
    assert all(abs(model / found - 1) < 0.15 for _, found, model in trials(fitted()))


def test_the_energy_that_fit_predicts_is_about_what_bench_estimates(tmp_path: Path) -> None:
    measured = api.bench(shared_build(DIGITS, tmp_path / "out", pes=4).folder, frames=1)
    predicted = api.fit(DIGITS, options=api.Options(pes=4))["energy"]
    for told, found in zip(predicted, measured.energy, strict=True):
        assert told["volts"] == found.volts
        assert told["microjoules"] == pytest.approx(found.microjoules, rel=0.1)
