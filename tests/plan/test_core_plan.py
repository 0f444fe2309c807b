"""Kernels in assembly on a mesh: for ops that one PE computes whole."""

from __future__ import annotations

from pathlib import Path

from end_to_end.builds import shared_build
from helpers import CHECKOUT
from npukit import api

DIGITS = CHECKOUT / "examples/digits/digits_int8.tflite"


def test_an_op_that_one_pe_computes_whole_has_its_kernel_and_stays_exact(tmp_path: Path) -> None:
    built = shared_build(DIGITS, tmp_path / "out", pes=4)
    rows = {op["name"]: op for op in built.manifest.summary["ops"]}
    assert len(rows["conv2d_0"]["pes"]) == 4
    assert rows["softmax_0"]["kernel"] == "softmax by table"
    assert api.validate(tmp_path / "out").passed


def test_a_mesh_of_cores_is_about_as_fast_as_one() -> None:
    one, four = (api.fit(DIGITS, options=api.Options(pes=pes, engine="cpu")) for pes in (1, 4))
    assert four["predicted"]["latency_cycles"] <= 1.2 * one["predicted"]["latency_cycles"]
    for row in four["ops"]:
        if row["op"] != "reshape" and len(row["pes"]) > 1:
            assert row["kernel"].startswith("plain C: ")
