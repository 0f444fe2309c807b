"""`--objective energy`: of plans on few and on many PEs, the planner takes the one with least energy per frame at the
given rate."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import CHECKOUT
from npukit import api
from npukit.accel.core_kernels import CostPreference
from npukit.board.board import load_board
from npukit.errors import DoesNotFit, NpukitError
from npukit.pipeline import compile_network
from npukit.plan.least_energy import least_energy
from npukit.plan.planner import Planned
from npukit.progress import Silent
from plan.engines import engines, planned_on
from plan.networks import small_net

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def build(folder: Path, rate: float, objective: str, pes: int) -> tuple[api.Build, float]:
    """The build, and the least energy per frame measured by `bench`, in microjoules."""
    options = api.Options(objective=objective, pes=pes, frames_per_second=rate)
    built = api.build(DIGITS, output=folder / f"{objective}-{pes}", options=options)
    return built, min(each.microjoules for each in api.bench(built, frames=1).energy)


@pytest.mark.exhaustive
def test_the_plan_that_is_chosen_takes_least_as_measured_too(tmp_path: Path) -> None:
    rate = 100_000
    chosen, energy = build(tmp_path, rate, "energy", 4)
    assert (chosen.plan().pes_used, chosen.plan().objective) == (2, "latency"), "one is too slow, four take more"
    told = chosen.manifest
    assert (told.options["objective"], told.options["pes"]) == ("energy", 4), "as asked"
    assert (told.planned_for.objective, told.planned_for.pes) == ("latency", 2), "as found"
    predicted = min(each["microjoules"] for each in chosen.manifest.summary["energy"])
    assert energy == pytest.approx(predicted, rel=0.1)
    for objective in ("latency", "throughput"):
        assert energy < build(tmp_path, rate, objective, 4)[1]


@pytest.mark.exhaustive
def test_a_low_rate_is_for_one_pe_at_the_low_voltage_and_no_rate_for_many() -> None:
    slow, fast = (
        api.fit(DIGITS, options=api.Options(objective="energy", pes=4, frames_per_second=rate)) for rate in (30, None)
    )
    least = min(slow.energy, key=lambda each: each["microjoules"])
    assert (slow.pes_used, least["volts"]) == (1, 0.5)
    assert fast.pes_used == 4
    assert sum("1 PE " in trial for trial in slow.energy_trials) == 2


def test_a_refusal_for_an_objective_leaves_the_others() -> None:
    board = load_board("pe-mesh")
    net, plan = planned_on(1, small_net)

    def only_throughput(pes: int, objective: str) -> Planned:
        if objective != "throughput" or pes > 1:
            raise DoesNotFit("nothing fits")
        return Planned(plan, net, engines(board), {})

    trials = least_energy(board, 4, None, ("latency", "throughput"), only_throughput)
    assert [planned.plan for planned, _ in trials] == [plan]


def test_tuned_kernels_are_of_a_plan_for_energy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = CostPreference({}, memory_relaxed=True)
    monkeypatch.setattr("npukit.pipeline.preference_for", lambda *_: tuned)
    compiled = compile_network(DIGITS, load_board("pe-mesh"), api.Options(objective="energy", pes=1), Silent())
    assert compiled.preference == tuned


def test_a_rate_that_no_plan_reaches_is_refused_by_how_much_is_missing() -> None:
    with pytest.raises(DoesNotFit, match="not 100,000,000"):
        api.fit(DIGITS, options=api.Options(objective="energy", pes=2, frames_per_second=1e8))


def test_a_board_that_says_nothing_of_its_power_is_refused() -> None:
    with pytest.raises(NpukitError, match="mps2-an386 does not say what power it takes"):
        api.fit(DIGITS, board="mps2-an386", options=api.Options(objective="energy"))
