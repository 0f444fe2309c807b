"""Meshes of RISC-V PEs: the same bytes as Cortex-M4F meshes, in the predicted cycles."""

from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.builds import DIGITS, shared_build
from helpers import first_of, models
from npukit import api

PREDICTED = 0.05


def is_exact_and_as_predicted(model: Path, folder: Path, pes: int) -> None:
    built = shared_build(model, folder, "pe-mesh-rv", toolchain="zig", pes=pes)
    assert api.validate(built.folder).passed
    found = api.bench(built.folder, frames=1)
    assert found.latency_cycles == pytest.approx(built.plan().predicted.latency_cycles, rel=PREDICTED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", first_of([16, 1]))
def test_a_network_on_a_mesh_of_risc_v_cores(pes: int, tmp_path: Path) -> None:
    is_exact_and_as_predicted(DIGITS / "digits_int8.tflite", tmp_path / "build", pes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("pes", [1, 16])
@pytest.mark.parametrize("name", ["kws_ref_model", "ad01_int8", "vww_96_int8", "pretrainedResnet_quant"])
def test_the_networks_of_mlperf_tiny_on_a_mesh_of_risc_v_cores(name: str, pes: int, tmp_path: Path) -> None:
    is_exact_and_as_predicted(models() / f"{name}.tflite", tmp_path / "build", pes)
