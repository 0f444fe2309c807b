"""Effect of real samples on float models that int8 does not suit: calibrated with noise, and with photographs or audio.

    python benchmarks/zoo/zoo_calibrated.py MODEL.tflite photographs  # needs scikit-learn: parts of its two photographs
    python benchmarks/zoo/zoo_calibrated.py MODEL.tflite audio        # generated, as in benchmarks/streams.py

Prints the signal over error of each output against LiteRT in float, in decibels: of npukit in float, and in int8 after
each calibration, on noise and on real samples not used for calibration.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # pyright: ignore[reportMissingImports]
from benchmarks.streams import audio

from npukit.net.reference import run_reference
from npukit.quantize.models import load_model

RATE = 22050
COUNT, TESTED = 32, 4
Cases = Sequence[np.ndarray]


def photographs(shape: tuple[int, ...], random: np.random.Generator) -> list[np.ndarray]:
    """Squares of photographs, scaled from various sizes, from -1 to 1."""
    from sklearn.datasets import load_sample_images

    found, side = [], shape[1]
    for number in range(COUNT + TESTED):
        image = load_sample_images().images[number % 2]
        size = int(random.integers(side, min(image.shape[:2])))
        top, left = (int(random.integers(0, length - size)) for length in image.shape[:2])
        places = np.linspace(0, size - 1, side).astype(int)
        part = image[top : top + size, left : left + size][places][:, places]
        found.append((part.astype(np.float32) / np.float32(127.5) - 1)[None])
    return found


def sounds(shape: tuple[int, ...], _: np.random.Generator) -> list[np.ndarray]:
    size = int(np.prod(shape))
    whole = audio((COUNT + TESTED) * size / RATE + 1, RATE)
    return [whole[number * size : (number + 1) * size].reshape(shape) for number in range(COUNT + TESTED)]


SAMPLES = {"photographs": photographs, "audio": sounds}


def in_litert(model: Path, cases: Cases) -> list[list[np.ndarray]]:
    interpreter = Interpreter(
        str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter.allocate_tensors()
    found = []
    for case in cases:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], case)
        interpreter.invoke()
        found.append([interpreter.get_tensor(each["index"]).copy() for each in interpreter.get_output_details()])
    return found


def here(model: Path, cases: Cases, calibrating: Cases | None = None) -> list[list[np.ndarray]]:
    """npukit's outputs: in int8 calibrated with `calibrating`, or in float without."""
    with tempfile.TemporaryDirectory() as scratch:
        samples = Path(scratch) / "samples.npz"
        if calibrating is not None:
            np.savez(samples, in0=np.stack(calibrating))
        how: dict[str, Any] = {"in_float": True} if calibrating is None else {"calibration": samples}
        net = load_model(model, in_file_types=True, **how).net
    return [run_reference(net, [case]) for case in cases]


def told(what: str, wanted: list[list[np.ndarray]], found: list[list[np.ndarray]]) -> None:
    decibels = []
    for place in range(len(wanted[0])):
        want, got = (np.concatenate([np.ravel(case[place]) for case in each]).astype(float) for each in (wanted, found))
        decibels.append(f"{10 * np.log10(np.square(want).sum() / np.square(want - got).sum()):.1f}")
    print(f"{what:32} {', '.join(decibels)} dB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("samples", choices=SAMPLES)
    given = parser.parse_args()
    random = np.random.default_rng(8)
    net = load_model(given.model, in_file_types=True, in_float=True).net
    sizes = net.tensor(net.inputs[0]).shape
    real = SAMPLES[given.samples](sizes, random)
    noise = [random.normal(0, 1, sizes).astype(np.float32) for _ in real]
    for name, cases in (("noise", noise), (given.samples, real)):
        tested = cases[COUNT:]
        wanted = in_litert(given.model, tested)
        told(f"in float, on {name}", wanted, here(given.model, tested))
        for other, samples in (("noise", noise), (given.samples, real)):
            told(f"calibrated with {other}, on {name}", wanted, here(given.model, tested, samples[:COUNT]))


if __name__ == "__main__":
    main()
