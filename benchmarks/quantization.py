"""Float models quantised by npukit with a hundred samples: their accuracy in float and in int8 on other samples.

python benchmarks/quantization.py digits                    # needs scikit-learn: tests on the example's test split
python benchmarks/quantization.py kws FOLDER_OF_MODELS      # keyword spotting of MLPerf Tiny: tests on the other 900
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npukit.frontend.models import import_model
from npukit.net.reference import run_reference
from npukit.quantize.canonical import canonical
from npukit.quantize.function import outputs
from npukit.quantize.models import CUT, load_model
from npukit.quantize.observe import runner
from npukit.quantize.scales import quantised

DIGITS = Path(__file__).resolve().parents[1] / "examples/digits"
CALIBRATED = 100
CHUNK = 20


@dataclass(frozen=True)
class Samples:
    inputs: np.ndarray
    labels: np.ndarray


def digits() -> tuple[Samples, Samples]:
    """To calibrate: the first training images. To test: the test split."""
    sys.path.insert(0, str(DIGITS))
    import train  # pyright: ignore[reportMissingImports]

    images, test, labels, test_labels = train.images()
    first = Samples(train.nchw(images)[:CALIBRATED], labels[:CALIBRATED])
    return first, Samples(train.nchw(test), test_labels)


def kws(models: Path) -> tuple[Samples, Samples]:
    """The official samples as real numbers: the first hundred to calibrate, the others to test."""
    given, meaning = np.load(models / "kws_accuracy.npz"), np.load(models / "kws_ref_model.npz")
    real = (given["in0"].astype(np.float32) - meaning["in0_zp"]) * meaning["in0_scale"]
    inputs, labels = real.astype(np.float32), given["labels"]
    return Samples(inputs[:CALIBRATED], labels[:CALIBRATED]), Samples(inputs[CALIBRATED:], labels[CALIBRATED:])


def float_accuracy(model: Path, test: Samples) -> float:
    module = canonical(import_model(model))
    run = runner(module, outputs(module))
    return float(np.mean([run([case])[0].argmax() for case in test.inputs] == test.labels))


def int8_accuracy(model: Path, calibrating: Samples, test: Samples, ranges: str) -> tuple[float, str]:
    """The share of right answers, and the worst layers."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "calibration.npz"
        np.savez(data, in0=calibrating.inputs)
        loaded = load_model(model, calibration=data, ranges=ranges)
    net = loaded.net
    quantization = net.tensor(net.inputs[0]).quantization
    assert quantization is not None
    assert loaded.report is not None
    integers = quantised(test.inputs, quantization)
    parts = (run_reference(net, [integers[start : start + CHUNK]])[0] for start in range(0, len(integers), CHUNK))
    answers = np.concatenate([part.reshape(len(part), -1).argmax(axis=1) for part in parts])
    worst = sorted(loaded.report.layers, key=lambda layer: layer.sqnr_db)[:3]
    return float(np.mean(answers == test.labels)), ", ".join(f"{layer.name} {layer.sqnr_db} dB" for layer in worst)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=["digits", "kws"])
    parser.add_argument("models", type=Path, nargs="?")
    given = parser.parse_args()
    if given.network == "kws" and given.models is None:
        parser.error("kws needs the folder of models")
    model = DIGITS / "digits_float.onnx" if given.network == "digits" else given.models / "kws_ref_model_float32.tflite"
    calibrating, test = digits() if given.network == "digits" else kws(given.models)
    print(f"{model.name}, float: {float_accuracy(model, test):.2%} of {len(test.labels)} test samples")
    for ranges in CUT:
        share, worst = int8_accuracy(model, calibrating, test, ranges)
        print(f"{model.name}, int8, {ranges}: {share:.2%}; worst layers {worst}")


if __name__ == "__main__":
    main()
