"""A small vision transformer, with norms, GELU and attention in small ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from end_to_end.builds import build
from end_to_end.transformers import Sizes, save_model, save_samples
from npukit import api
from oracles.onnx_runtime import run_onnx

SIZES = Sizes(side=8, width=32, heads=4)


@pytest.mark.exhaustive
def test_two_blocks_quantised(tmp_path: Path) -> None:
    """Nothing is float; int8 is exact on the emulator, and close to the float model."""
    save_model(tmp_path / "vit.onnx", SIZES)
    save_samples(tmp_path / "samples.npz", SIZES)
    images = np.random.default_rng(13).normal(size=(10, 1, 1, SIZES.side, SIZES.side)).astype(np.float32)
    built = build(
        tmp_path / "vit.onnx", tmp_path / "out", calibration=tmp_path / "samples.npz", pes=1, io="int8", target_db=0
    )
    kinds = " ".join(op["op"] for op in built.manifest.summary["ops"]).split()
    assert [kinds.count(kind) for kind in ("norm", "softmax", "matmul", "lookup")] == [5, 2, 4, 2]
    assert not {"subtract", "divide", "multiply"} & set(kinds)
    assert not any(kind.startswith("nn.") for kind in kinds)
    assert min(layer["sqnr_db"] for layer in built.manifest.summary["quantization"]) > 20
    assert api.validate(tmp_path / "out").passed
    assert _signal_over_error(tmp_path, images) > 20


def _signal_over_error(folder: Path, images: np.ndarray) -> float:
    """Signal-to-error ratio in dB of the emulator's scores against the float model in ONNX Runtime, on images not used
    for calibration."""
    net = api.load_build(folder / "out").net()
    given, result = (net.tensor(name).quantization for name in (net.inputs[0], net.outputs[0]))
    assert given is not None
    assert result is not None
    integers = np.clip(np.rint(images / given.scale) + given.zero_point, -128, 127).astype(np.int8)
    shape = net.tensor(net.inputs[0]).shape
    np.savez(folder / "inputs.npz", in0=integers.reshape(len(integers), *shape))
    (got,) = api.run(folder / "out", inputs=folder / "inputs.npz")
    real = (got.astype(np.float64) - result.zero_point) * result.scale
    expected = np.stack([run_onnx(folder / "vit.onnx", {"image": image})[0] for image in images]).reshape(real.shape)
    return float(10 * np.log10(np.sum(expected**2) / np.sum((real - expected) ** 2)))
