"""Each op goes to the fastest engine, including the core with its kernel, and the listing gives the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from end_to_end.builds import DIGITS
from helpers import CHECKOUT
from npukit import api
from npukit.errors import NpukitError
from npukit.skeleton import new_accelerator

MODEL = DIGITS / "digits_int8.tflite"
SYSTOLIC = str(CHECKOUT / "examples/accelerators/systolic8x8/systolic8x8.toml")
"""Slower than the core at three of four supported ops of the digits."""


def fit(board: str = SYSTOLIC, **options: Any) -> dict[str, Any]:
    return api.fit(MODEL, board=board, options=api.Options(**options))


def ops(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {op["name"]: op for op in found["ops"]}


def latency(found: dict[str, Any]) -> int:
    return found["predicted"]["latency_cycles"]


@pytest.fixture(scope="module")
def by_engine() -> dict[str | None, dict[str, Any]]:
    """The digits on one PE: placed by npukit, all on the core, and as much as possible on the array."""
    return {engine: fit(pes=1, engine=engine) for engine in (None, "cpu", "systolic8x8")}


def test_no_accelerator_makes_a_frame_longer(by_engine: dict[str | None, dict[str, Any]]) -> None:
    placed = latency(by_engine[None])
    assert placed < latency(by_engine["cpu"])
    assert placed < latency(by_engine["systolic8x8"])


def test_the_reason_has_both_figures(by_engine: dict[str | None, dict[str, Any]]) -> None:
    placed, on_array = ops(by_engine[None]), ops(by_engine["systolic8x8"])
    taken = [name for name, op in on_array.items() if op["engine"] == "systolic8x8"]
    slower = [name for name in taken if placed[name]["engine"] == "cpu"]
    assert 0 < len(slower) < len(taken)
    for name in slower:
        words = f"systolic8x8 is slower than the core: {on_array[name]['predicted_cycles']:,} cycles, not "
        assert placed[name]["reason"].startswith(words)
        assert int(placed[name]["reason"].removeprefix(words).replace(",", "")) < on_array[name]["predicted_cycles"]


@pytest.mark.exhaustive
def test_what_several_pes_share_may_be_faster_on_the_accelerator_all_the_same() -> None:
    found = fit(pes=4)
    assert ops(found)["conv2d_0"]["engine"] == "systolic8x8"
    assert len(ops(found)["conv2d_0"]["pes"]) == 4
    assert latency(found) < latency(fit(pes=1))


def test_an_op_that_is_pinned_to_several_pes_stays_on_the_accelerator(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("[ops.conv2d_0]\npes = [1, 2]\n")
    assert ops(fit(plan=str(tmp_path / "plan.toml")))["conv2d_0"]["engine"] == "systolic8x8"


def test_an_engine_must_be_one_of_the_board() -> None:
    with pytest.raises(NpukitError, match="--engine mac_array: the board's accelerators are: systolic8x8"):
        fit(engine="mac_array")


def test_strict_wants_what_the_accelerator_takes_on_it() -> None:
    """With `--strict` the array also takes ops that the core computes faster: the error names an unsupported op."""
    with pytest.raises(NpukitError, match=r"--strict: depthwise_conv2d_0 .* runs on the core"):
        fit(strict=True)


def test_the_skeleton_is_faster_than_the_core(tmp_path: Path) -> None:
    new_accelerator("tiny", tmp_path / "tiny")
    board = str(tmp_path / "tiny/tiny.toml")
    with_it, without = (ops(fit(board, pes=1, engine=engine)) for engine in ("tiny", "cpu"))
    taken = [name for name, op in with_it.items() if op["engine"] == "tiny"]
    assert len(taken) == 2
    for name in taken:
        assert with_it[name]["predicted_cycles"] < without[name]["predicted_cycles"] / 2
