"""Convolutions and dense layers in C with products in assembly, for an Armv6-M core: equal to the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.core_networks import run_on_emulator
from codegen.random_ops import MAKERS, Bundle
from helpers import first_of
from npukit.net.check import check_net

BOARD = """like = "mps2-an385"
name = "an385-m0plus"
summary = "the memories and devices of the AN385 around a Cortex-M0+"
runs_on = ["emulator"]
qemu = {}

[core]
cpu = "cortex-m0plus"
clock_hz = 25_000_000
"""
OPS_OF_EACH_KIND = 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("compiler", first_of(["zig", "gcc"]))
@pytest.mark.parametrize("seed", first_of(range(3)))
def test_random_filters_equal_the_reference(seed: int, compiler: str, tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(BOARD)
    bundle = Bundle(np.random.default_rng(seed), scale=2, rounds_once=seed % 2 == 1)
    for kind in ("conv2d", "dense", "depthwise_conv2d") * OPS_OF_EACH_KIND:
        MAKERS[kind](bundle)
    ran = run_on_emulator(check_net(bundle.net()), tmp_path, compiler, board=str(tmp_path / "board.toml"))
    assert ran.validation.passed
    assert "products(" in (tmp_path / "project/net/kernels.c").read_text()
