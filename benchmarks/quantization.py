"""Float models quantised by npukit with a hundred samples, beside the float model on other samples.

    python benchmarks/quantization.py digits                # needs scikit-learn: tests on the example's test split
    python benchmarks/quantization.py kws FOLDER_OF_MODELS  # official samples of MLPerf Tiny: tests on the other 900
    python benchmarks/quantization.py ic FOLDER_OF_MODELS  # needs scikit-learn, Pillow: tests on parts of photographs
    python benchmarks/quantization.py vww FOLDER_OF_MODELS  # likewise
    python benchmarks/quantization.py ad FOLDER_OF_MODELS  # eight samples, tests on four: there are no more

Prints the share of right classes with labels, the share of frames with the same class as in float, and the signal over
error of the outputs; likewise for MLPerf Tiny's own int8 model, if any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npukit.frontend.models import import_model, load_net_from_model
from npukit.net.importer.expressions import shape_of
from npukit.net.net import Net
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
    labels: np.ndarray | None = None


Split = tuple[Samples, Samples]
"""Samples to calibrate with, and samples to test with."""


@dataclass(frozen=True)
class Network:
    """Files in the folder of models. `official`: MLPerf Tiny's own int8 model of the network."""

    samples: Callable[[Path], Split]
    models: tuple[str, ...]
    official: str = ""
    classifies: bool = True


def digits(_: Path) -> Split:
    """The first training images; the test split."""
    sys.path.insert(0, str(DIGITS))
    import train  # pyright: ignore[reportMissingImports]

    images, test, labels, test_labels = train.images()
    first = Samples(train.nchw(images)[:CALIBRATED], labels[:CALIBRATED])
    return first, Samples(train.nchw(test), test_labels)


def kws(models: Path) -> Split:
    """The official samples as real numbers."""
    given = np.load(models / "kws_accuracy.npz")
    inputs, labels = _real(given["in0"], models / "kws_ref_model.npz"), given["labels"]
    return Samples(inputs[:CALIBRATED], labels[:CALIBRATED]), Samples(inputs[CALIBRATED:], labels[CALIBRATED:])


def ad(models: Path) -> Split:
    """Two of three real samples; the third."""
    given = np.load(models / "ad01_int8.npz")
    inputs = _real(given["in0"], models / "ad01_int8.npz")[: int(given["n_real"])]
    tests = np.arange(len(inputs)) % 3 == 2
    return Samples(inputs[~tests]), Samples(inputs[tests])


def photographs(size: int, most: float) -> Callable[[Path], Split]:
    """Squares of scikit-learn's two photographs: the left halves to calibrate, the right halves to test."""

    def split(_: Path) -> Split:
        from sklearn.datasets import load_sample_images

        random, found = np.random.default_rng(1), ([], [])
        for index in range(2 * CALIBRATED):
            image = load_sample_images().images[index // 2 % 2]
            half = np.split(image, 2, axis=1)[index % 2]
            top, left = (random.integers(0, side - size) for side in half.shape[:2])
            part = half[top : top + size, left : left + size]
            found[index % 2].append(part[None].astype(np.float32) * np.float32(most / 255))
        return Samples(np.stack(found[0])), Samples(np.stack(found[1]))

    return split


def _real(integers: np.ndarray, meaning: Path) -> np.ndarray:
    given = np.load(meaning)
    return ((integers.astype(np.float32) - given["in0_zp"]) * given["in0_scale"]).astype(np.float32)


NETWORKS = {
    "digits": Network(digits, ("digits_float.onnx",)),
    "kws": Network(kws, ("kws_ref_model_float32.tflite",), "kws_ref_model.tflite"),
    "ic": Network(
        photographs(32, 255),
        ("pretrainedResnet_float32.tflite", "pretrainedResnet.onnx"),
        "pretrainedResnet_quant.tflite",
    ),
    "vww": Network(photographs(96, 1), ("vww_96_float32.tflite", "vww_96_float.onnx"), "vww_96_int8.tflite"),
    "ad": Network(ad, ("ad01_fp32.tflite",), "ad01_int8.tflite", classifies=False),
}


def as_taken(images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The samples in the model's shape. Images are NHWC and are transposed to NCHW if the shape requires it."""
    moved = images if images.shape[1:] == shape or images.ndim < 5 else images.transpose(0, 1, 4, 2, 3)
    return np.ascontiguousarray(moved.reshape(-1, *shape))


def in_float(model: Path, test: Samples) -> np.ndarray:
    """The float network's outputs."""
    module = canonical(import_model(model))
    run = runner(module, outputs(module))
    inputs = as_taken(test.inputs, shape_of(module["main"].params[0]))  # type: ignore[attr-defined]
    return np.stack([run([case])[0] for case in inputs]).reshape(len(inputs), -1)


def in_int8(net: Net, test: Samples) -> np.ndarray:
    """The int8 network's outputs, dequantised."""
    taken, given = (net.tensor(name) for name in (net.inputs[0], net.outputs[0]))
    assert taken.quantization is not None
    assert given.quantization is not None
    integers = quantised(as_taken(test.inputs, taken.shape), taken.quantization)
    parts = (run_reference(net, [integers[start : start + CHUNK]])[0] for start in range(0, len(integers), CHUNK))
    found = np.concatenate([part.reshape(len(part), -1) for part in parts])
    return (found.astype(np.float32) - given.quantization.zero_point) * np.float32(given.quantization.scale)


def quantised_here(model: Path, calibrating: Samples, ranges: str) -> tuple[Net, str]:
    """The quantised net, and a text that names its three worst layers."""
    shape = shape_of(canonical(import_model(model))["main"].params[0])  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "calibration.npz"
        np.savez(data, in0=as_taken(calibrating.inputs, shape))
        loaded = load_model(model, calibration=data, ranges=ranges)
    assert loaded.report is not None
    worst = sorted(loaded.report.layers, key=lambda layer: layer.sqnr_db)[:3]
    return loaded.net, ", ".join(f"{layer.name} {layer.sqnr_db} dB" for layer in worst)


def told(found: np.ndarray, real: np.ndarray, test: Samples, *, classifies: bool) -> str:
    """The accuracy of outputs as a text, relative to the float network's outputs, and to labels if there are any."""
    error = 10 * np.log10(np.square(real).sum() / np.square(found - real).sum())
    parts = [f"signal over error {error:.1f} dB"]
    if classifies:
        parts.insert(0, f"same class as in float {np.mean(found.argmax(axis=1) == real.argmax(axis=1)):.1%}")
    if test.labels is not None:
        parts.insert(0, f"{np.mean(found.argmax(axis=1) == test.labels):.2%} right")
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("models", type=Path, nargs="?", default=DIGITS)
    given = parser.parse_args()
    if given.network != "digits" and given.models == DIGITS:
        parser.error(f"{given.network} needs the folder of models")
    network = NETWORKS[given.network]
    calibrating, test = network.samples(given.models)
    print(f"{len(calibrating.inputs)} samples to calibrate, {len(test.inputs)} others to test")
    for name in network.models:
        compare(given.models / name, network, calibrating, test)


def compare(model: Path, network: Network, calibrating: Samples, test: Samples) -> None:
    """Print the accuracy of one float model, of its int8 versions and of the official int8 model."""
    real = in_float(model, test)
    if test.labels is not None:
        print(f"{model.name}, float: {np.mean(real.argmax(axis=1) == test.labels):.2%} right")
    for ranges in CUT:
        net, worst = quantised_here(model, calibrating, ranges)
        said = told(in_int8(net, test), real, test, classifies=network.classifies)
        print(f"{model.name}, int8, {ranges}: {said}; worst layers {worst}", flush=True)
    if network.official:
        net = load_net_from_model(model.parent / network.official)
        print(f"{network.official}: {told(in_int8(net, test), real, test, classifies=network.classifies)}", flush=True)


if __name__ == "__main__":
    main()
