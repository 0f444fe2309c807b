"""Float models quantised by npukit with a hundred samples: right classes on other samples, in float, int8 and int4.

python benchmarks/quantization.py digits                # needs scikit-learn: tests on the example's test split
python benchmarks/quantization.py kws FOLDER_OF_MODELS  # official samples of MLPerf Tiny: tests on the other 900
python benchmarks/quantization.py target FOLDER         # each MODEL with MODEL.npz: decibels and cycles
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from npukit import api
from npukit.errors import NpukitError
from npukit.net.net import Net
from npukit.net.reference import run_reference
from npukit.options import Options
from npukit.quantize.models import OMITTED, load_model
from npukit.quantize.scales import quantised

DIGITS = Path(__file__).resolve().parents[1] / "examples/digits"
CALIBRATED, CHUNK = 100, 20


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of the training split, and images and labels of the test split."""
    sys.path.insert(0, str(DIGITS))
    import train  # pyright: ignore[reportMissingImports]

    images, test, _, labels = train.images()
    return train.nchw(images)[:CALIBRATED], train.nchw(test), labels


def kws(models: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The official samples as real numbers: the first hundred, the others and their labels."""
    given, meaning = np.load(models / "kws_accuracy.npz"), np.load(models / "kws_ref_model.npz")
    inputs = ((given["in0"].astype(np.float32) - meaning["in0_zp"]) * meaning["in0_scale"]).astype(np.float32)
    return inputs[:CALIBRATED], inputs[CALIBRATED:], given["labels"][CALIBRATED:]


def right(net: Net, inputs: np.ndarray, labels: np.ndarray) -> float:
    """The share of right classes."""
    taken = net.tensor(net.inputs[0])
    shaped = inputs.reshape(-1, *taken.shape)
    integers = shaped if taken.quantization is None else quantised(shaped, taken.quantization)
    parts = (run_reference(net, [integers[start : start + CHUNK]])[0] for start in range(0, len(integers), CHUNK))
    found = np.concatenate([part.reshape(len(part), -1) for part in parts])
    return float(np.mean(found.argmax(axis=1) == labels))


def nets(model: Path, calibrating: np.ndarray) -> Iterator[tuple[str, Net]]:
    """The network in float, and quantised with each choice of ranges and of weights."""
    yield "float", load_model(model, in_float=True).net
    with tempfile.TemporaryDirectory() as scratch:
        data: Any = Path(scratch) / "calibration.npz"
        np.savez(data, in0=calibrating)
        yield from ((f"int8, {ranges}", load_model(model, calibration=data, ranges=ranges).net) for ranges in OMITTED)
        yield "weights in int4", load_model(model, calibration=data, weights="int4").net


PLAIN = -1e9
"""A target that every network reaches."""


def row(model: Path) -> str:
    """The row of a model: decibels on cases held back and predicted cycles, of plain int8 and of the found network."""
    cells, told = list[tuple[str, int]](), dict[str, Any]()
    for target in (PLAIN, Options().target_db):
        try:
            options = Options(calibration=model.with_name(f"{model.name}.npz"), target_db=target)
            told = api.fit(model, options=options)
            cells.append((f"{told['reached']['db']:.1f}", told["predicted"]["latency_cycles"]))
        except NpukitError as error:
            cells.append((error.message, 0))
    (before, cycles), (after, found) = cells
    steps = "; ".join(told["reached"]["steps"]) if found else ""
    times = f"{found / cycles:.2f}" if cycles and found else ""
    return f"| {model.name} | {before} | {after} | {cycles:,} | {found:,} | {times} | {steps} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=("digits", "kws", "target"))
    parser.add_argument("models", type=Path, nargs="?", default=DIGITS)
    given = parser.parse_args()
    if given.network == "target":
        for model in sorted(each for each in given.models.iterdir() if each.suffix in (".onnx", ".tflite", ".pt2")):
            print(row(model), flush=True)
        return
    calibrating, inputs, labels = digits() if given.network == "digits" else kws(given.models)
    file = "digits_float.onnx" if given.network == "digits" else "kws_ref_model_float32.tflite"
    for name, net in nets(given.models / file, calibrating):
        print(f"{file}, {name}: {right(net, inputs, labels):.2%} right of {len(labels)}", flush=True)


if __name__ == "__main__":
    main()
