"""Float models quantised by npukit with a hundred samples: right classes on other samples, in float, int8 and int4.

python benchmarks/quantization.py digits                # needs scikit-learn: tests on the example's test split
python benchmarks/quantization.py kws FOLDER_OF_MODELS  # official samples of MLPerf Tiny: tests on the other 900
python benchmarks/quantization.py target FOLDER         # each MODEL with MODEL.npz: decibels and cycles

`shapes.json` in the folder of `target` may close open shapes: {MODEL: {INPUT: SHAPE}}.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from benchmarks.state import commit

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


PLAIN, CLEAR = -1e9, 3.0
"""A target that every network reaches, and decibels above a target from which no other network is searched for."""
RESULTS = Path(__file__).with_name("quantized.json")


def fitted(model: Path, target: float, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Decibels on cases held back, predicted cycles and steps of a network with a target; the reason of a refusal."""
    sizes: Any = tuple((name, tuple(shape)) for name, shape in shapes.items())
    options = Options(calibration=model.with_name(f"{model.name}.npz"), target_db=target, input_shapes=sizes)
    begun = process_time()
    try:
        told = api.fit(model, options=options)
    except NpukitError as error:
        reached = re.search(r"in int8 is ([-\d.]+) dB", error.message)
        found: dict[str, Any] = {"db": float(reached[1])} if reached else {"why": error.message}
        return {**found, "seconds": round(process_time() - begun)}
    reached = told["reached"]
    cycles, seconds = told["predicted"]["latency_cycles"], round(process_time() - begun)
    return {"db": reached["db"], "cycles": cycles, "steps": list(reached["steps"]), "seconds": seconds}


def measured(model: Path, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """A model in plain int8, and with the target."""
    plain, target = fitted(model, PLAIN, shapes), Options().target_db
    found = plain if plain.get("db", PLAIN) >= target + CLEAR else fitted(model, target, shapes)
    return {"model": model.name, "plain": plain, "found": found}


def row(given: Mapping[str, Any]) -> str:
    """The row of a model: decibels and cycles in plain int8 and of the found network."""
    plain, found = given["plain"], given["found"]
    if "why" in plain:
        return f"| {given['model']} | {plain['why']} | | | | |"
    times = f"{found['cycles'] / plain['cycles']:.2f}" if "cycles" in found else "missed"
    steps = "; ".join(found.get("steps", ())) or ("none" if "cycles" in found else "")
    return (
        f"| {given['model']} | {plain['db']:.1f} | {found.get('db', 0):.1f} | {plain['cycles']:,} | {times} | {steps} |"
    )


def targets(folder: Path, only: str, *, write: bool) -> None:
    """Measures the models of a folder, and prints a row for each."""
    sizes, results = folder / "shapes.json", dict[str, Any]()
    shapes = json.loads(sizes.read_text(encoding="utf-8")) if sizes.exists() else {}
    for model in sorted(each for each in folder.iterdir() if each.suffix in (".onnx", ".tflite", ".pt2")):
        if not re.search(only, model.name):
            continue
        results[model.name] = measured(model, shapes.get(model.name, {}))
        print(row(results[model.name]), flush=True)
        if write:
            known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
            known[model.name] = {**results[model.name], "at": commit()}
            RESULTS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=("digits", "kws", "target"))
    parser.add_argument("models", type=Path, nargs="?", default=DIGITS)
    parser.add_argument("--only", default="", help="a pattern of models' names")
    parser.add_argument("--write", action="store_true", help=f"keep the results in {RESULTS.name}")
    given = parser.parse_args()
    if given.network == "target":
        targets(given.models, given.only, write=given.write)
        return
    calibrating, inputs, labels = digits() if given.network == "digits" else kws(given.models)
    file = "digits_float.onnx" if given.network == "digits" else "kws_ref_model_float32.tflite"
    for name, net in nets(given.models / file, calibrating):
        print(f"{file}, {name}: {right(net, inputs, labels):.2%} right of {len(labels)}", flush=True)


if __name__ == "__main__":
    main()
