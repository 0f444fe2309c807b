"""Cycles, instructions and memory equal `benchmarks/golden_metrics.json`: a change is committed on purpose."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from benchmarks.golden_metrics import COMPILER, DIGITS, cases, golden, measure, title

from end_to_end.builds import shared_build
from helpers import models

QUICK = (("kws_ref_model", 16, "latency"), (DIGITS.stem, 4, "latency"), (DIGITS.stem, 4, "throughput"))


def chosen(name: str, pes: int, objective: str):
    marks = () if (name, pes, objective) in QUICK else pytest.mark.exhaustive
    return pytest.param(name, pes, objective, marks=marks)


@pytest.mark.parametrize(("name", "pes", "objective"), [chosen(*case) for case in cases()])
def test_the_metrics_are_the_golden_ones(name: str, pes: int, objective: str, tmp_path: Path) -> None:
    model = DIGITS if name == DIGITS.stem else models() / f"{name}.tflite"
    build = partial(shared_build, model, tmp_path / "out", pes=pes, objective=objective, toolchain=COMPILER)
    assert measure(build) == golden()[title(name, pes, objective)], (
        "on purpose? python benchmarks/golden_metrics.py --write"
    )
