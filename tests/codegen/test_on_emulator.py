"""Random ops of every kind, with random shapes, strides, pads, groups, scales and zero points, on the emulator.

Cross-compiled C, and assembly kernels where available, equal the reference in every layer.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.core_networks import run_on_emulator
from codegen.random_ops import MAKERS, Bundle
from helpers import first_of
from npukit.net.check import check_net


@pytest.mark.exhaustive
@pytest.mark.parametrize("rounds_once", [False, True])
@pytest.mark.parametrize("seed", first_of(range(3)))
def test_every_kind_equals_the_reference(seed: int, tmp_path: Path, *, rounds_once: bool) -> None:
    bundle = Bundle(np.random.default_rng(seed), rounds_once=rounds_once)
    for make in MAKERS.values():
        make(bundle)
    net = check_net(bundle.net())
    ran = run_on_emulator(net, tmp_path)
    assert ran.validation.passed, ran.validation.mismatches
    assert ran.validation.layers_checked == ran.validation.cases * len(net.ops)
