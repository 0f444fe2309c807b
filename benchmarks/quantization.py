"""Float models quantised by npukit with a hundred samples: right classes on other samples, in float, int8 and int4.

python benchmarks/quantization.py digits                # needs scikit-learn: tests on the example's test split
python benchmarks/quantization.py kws FOLDER_OF_MODELS  # official samples of MLPerf Tiny: tests on the other 900
python benchmarks/quantization.py target FOLDER         # decibels and cycles of float models

`target` measures the models of FOLDER with calibration data MODEL.npz beside them, the float models of MLPerf Tiny in
FOLDER with the samples of the int8 models, and the zoo's models in FOLDER (`benchmarks/zoo/zoo.py`) with random inputs
from a fixed seed: all float models of packages, and each second exported model by name, in its first format.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from benchmarks.state import commit
from benchmarks.zoo.exporters.models import listed
from benchmarks.zoo.zoo import collected
from benchmarks.zoo.zoo_model import MESH, RUNTIMES, Given, apart, drawn

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
CYCLES, CASES, SECONDS = 1.3, 16, 600
"""Most cycles relative to plain int8, random calibration cases, and the time limit of a model in seconds."""
RESULTS, PAGE = Path(__file__).with_name("quantized.json"), Path(__file__).with_suffix(".md")
EXPORTED = Path(__file__).parent / "zoo/exporters/exported.toml"
ENOUGH_REAL = 10
"""Real inputs of a file from which on its noise is left out."""
MLPERF_TINY = {
    "ad01_fp32.tflite": "ad01_int8",
    "kws_ref_model_float32.tflite": "kws_accuracy",
    "pretrainedResnet_float32.tflite": "pretrainedResnet_quant",
    "vww_96_float32.tflite": "vww_96_int8",
}
"""The int8 networks whose samples a float model takes."""


@dataclass(frozen=True)
class Sample:
    """A float model of the set, and its calibration data: a file, or the int8 inputs of a network, or random.
    `trained`: with trained weights, else with random ones."""

    name: str
    given: Given
    data: Path | None = None
    trained: bool = True

    def cases(self) -> dict[str, np.ndarray]:
        """The calibration data, by input."""
        if self.data is None:
            inputs, random = RUNTIMES[self.given.path.suffix](self.given).inputs, np.random.default_rng(8)
            inputs = [each for each in inputs if each.name not in self.given.values]
            cases = [[drawn(each, {}, random) for each in inputs] for _ in range(CASES)]
            return {f"in{place}": np.stack(column) for place, column in enumerate(zip(*cases, strict=True))}
        if self.data.stem == "kws_accuracy":
            return {"in0": kws(self.data.parent)[0]}
        data = np.load(self.data)
        if "in0_scale" not in data:
            return dict(data)
        count = int(data["n_real"]) if data["n_real"] >= ENOUGH_REAL else None
        return {
            "in0": ((data["in0"][:count].astype(np.float32) - data["in0_zp"]) * data["in0_scale"]).astype(np.float32)
        }


def samples(folder: Path) -> Iterator[Sample]:
    """The models of the set in a folder."""
    for model in sorted(each for each in folder.iterdir() if each.suffix in RUNTIMES):
        beside = (model.with_suffix(f"{model.suffix}.npz"), model.with_suffix(".cal.npz"))
        data = [*beside, *(folder / f"{int8}.npz" for file, int8 in MLPERF_TINY.items() if file == model.name)]
        yield from (Sample(model.name, Given(model, target=MESH), each) for each in data if each.exists())
    for model in collected(folder):
        yield Sample(model.title, Given(model.file, model.shapes, model.values, target=MESH))
    listed_all = listed(tomllib.loads(EXPORTED.read_text(encoding="utf-8"))["group"])
    files = {f"{each.package}/{each.name}": each.formats[0] for each in reversed(list(listed_all))}
    for name in sorted(files)[::2]:
        file = folder / "exported" / f"{name}.{files[name]}"
        if file.exists():
            yield Sample(f"{name}.{files[name]}", Given(file, target=MESH), trained=False)


def fitted(sample: Sample, data: Path, target: float) -> dict[str, Any]:
    """Decibels on cases held back, predicted cycles and steps of a network with a target; the reason of a refusal."""
    options = replace(sample.given.options, calibration=data, target_db=target)
    begun = process_time()
    try:
        told = api.fit(sample.given.path, options=options)
    except NpukitError as error:
        reached = re.search(r"in int8 is ([-\d.]+) dB", error.message)
        found: dict[str, Any] = {"db": float(reached[1])} if reached else {"why": error.message}
        return {**found, "seconds": round(process_time() - begun)}
    reached = told["reached"]
    cycles, seconds = told["predicted"]["latency_cycles"], round(process_time() - begun)
    return {"db": reached["db"], "cycles": cycles, "steps": list(reached["steps"]), "seconds": seconds}


def measured(sample: Sample) -> dict[str, Any]:
    """A model in plain int8, and with the target."""
    sample = replace(sample, given=sample.given.of(RUNTIMES[sample.given.path.suffix](sample.given)))
    with tempfile.TemporaryDirectory() as scratch:
        data: Any = Path(scratch) / "calibration.npz"
        np.savez(data, **sample.cases())  # pyright: ignore[reportArgumentType]
        plain, target = fitted(sample, data, PLAIN), Options().target_db
        enough = "why" in plain or plain["db"] >= target + CLEAR
        return {"plain": plain, "found": plain if enough else fitted(sample, data, target)}


def row(given: Mapping[str, Any]) -> str:
    """The row of a model: decibels and cycles in plain int8 and of the found network."""
    plain, found = given["plain"], given.get("found", {})
    if "why" in plain:
        return f"| {given['model']} | {plain['why']} | | | | | {given['at']} |"
    times = f"{found['cycles'] / plain['cycles']:.2f}" if "cycles" in found else "missed"
    steps = "; ".join(found.get("steps", ())) or ("none" if "cycles" in found else "")
    decibels = f"{plain['db']:.1f} | {found.get('db', 0):.1f}"
    return f"| {given['model']} | {decibels} | {plain['cycles']:,} | {times} | {steps} | {given['at']} |"


def targets(folder: Path, only: str, *, write: bool) -> None:
    """Measures the models of a folder, and prints a row for each and the share within the limits."""
    results = dict[str, Any]()
    for sample in (each for each in samples(folder) if re.search(only, each.name)):
        ended: dict[str, Any] = {"plain": {"why": f"it dies, or is not done after {SECONDS} s"}}
        found = next(iter(apart(partial(measured, sample), SECONDS)), ended)
        if "quantised already" in found["plain"].get("why", ""):
            continue
        results[sample.name] = {"model": sample.name, "trained": sample.trained, **found, "at": commit()}
        print(row(results[sample.name]), flush=True)
        if write:
            known = {each["model"]: each for each in kept()} | {sample.name: results[sample.name]}
            RESULTS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
            PAGE.write_text(page(), encoding="utf-8")
    print(*shares(list(results.values())), sep="\n")


def too_large(given: Mapping[str, Any]) -> bool:
    return "bytes more than" in given["plain"].get("why", "")


def shares(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The numbers of models that reach the target within the cycles, among all but those refused for lack of memory."""
    for trained, weights in ((True, "trained"), (False, "random")):
        judged = [each for each in results if each["trained"] is trained and not too_large(each)]
        yield from (f"{share(judged, weights)}." for _ in judged[:1])


def share(judged: Sequence[Mapping[str, Any]], weights: str) -> str:
    times = (each.get("found", {}).get("cycles", inf) / each["plain"].get("cycles", 1) for each in judged)
    good = [each for each in times if each <= CYCLES]
    told = f"{len(good)} of {len(judged)} models with {weights} weights reach the target"
    return f"{told} within {CYCLES} times the cycles of plain int8"


def kept() -> list[Mapping[str, Any]]:
    return list(json.loads(RESULTS.read_text(encoding="utf-8")).values()) if RESULTS.exists() else []


def table() -> Iterator[str]:
    """The counts of docs/models.md."""
    yield from shares(kept())


def page() -> str:
    """benchmarks/quantization.md with new rows: the models kept in `RESULTS` that plain int8 does not serve."""
    low = (each for each in kept() if not too_large(each) and each["plain"].get("db", 0) < Options().target_db)
    head, line, _ = PAGE.read_text(encoding="utf-8").partition("\n|---|--:|--:|--:|--:|---|---|\n")
    return head + line + "".join(f"{row(each)}\n" for each in low)


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
