"""Memory use of quantisation: with large images, the layers of only a few cases at once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from float_models import node, saved, weights

from npukit.quantize.models import load_model

CASES, SIDE, CHANNELS, LAYERS = 16, 160, 16, 8
TIMES = 8
"""Memory limit in multiples of the calibration data, which are loaded, checked and converted. Layers come on top."""


@pytest.mark.exhaustive
def test_cases_of_large_images_are_compared_one_after_the_other(tmp_path: Path) -> None:
    shape = (1, CHANNELS, SIDE, SIDE)
    names = ["x", *(f"h{layer}" for layer in range(1, LAYERS)), "y"]
    nodes = [node("Conv", f"{names[at]} w", names[at + 1]) for at in range(LAYERS)]
    path = saved(tmp_path, shape, nodes, w=weights(CHANNELS, CHANNELS, 1, 1))
    images = np.random.default_rng(3).standard_normal((CASES, *shape)).astype(np.float32)
    np.savez(tmp_path / "data.npz", in0=images)
    tracemalloc.start()
    try:
        report = load_model(path, calibration=tmp_path / "data.npz").report
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report is not None
    assert len(report.layers) == LAYERS
    assert min(layer.sqnr_db for layer in report.layers) > 25
    assert most < TIMES * images.nbytes
