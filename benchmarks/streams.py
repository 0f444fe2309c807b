"""Networks with states over minutes of generated audio: device, exported library and reference, bit for bit.

    python benchmarks/streams.py MODEL [--seconds 600] [--device-seconds 600] [--hop 320] [--bands] [--rate 16000]
        [--state IN=OUT] [--float] [--input NAME:1x576] [--value NAME:16000] [--board pe-mesh] [--on emulator] [--pes N]

The audio is generated from a seed: tones that glide and beat like syllables, noise, pauses. A frame is a window of as
many samples as the first input has elements, `--hop` samples after the previous window. With `--bands`, a frame is the
log energies of bands of the last `--hop` samples, one band an element. The device runs the first `--device-seconds`, as
deployed, and reports agreement after each minute of the stream. The library is the portable one of `npukit export`,
compiled here with npukit's own mathematical functions. A .tflite file also runs in TensorFlow Lite Micro if installed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

import numpy as np

from npukit import api
from npukit.cli.options import parsed_shapes, parsed_states
from npukit.data import data_folder
from npukit.measure.cases import Cases, reference_of
from npukit.measure.target import open_target
from npukit.measure.validate import run_round
from npukit.net.net import Net
from npukit.net.tensor import Tensor
from npukit.project.build_folder import Build

SEED = 20
SYLLABLE = 4.0
"""Beats a second."""

DRIVER = """#include <stdio.h>
#include "{name}.h"

int main(void)
{{
    {name}_init();
    while ({reads}) {{
        if ({name}_run() != 0) {{
            return 1;
        }}
        fwrite({gives}(), 1, {bytes}, stdout);
    }}
    return 0;
}}
"""
"""C program around the library: frames from standard input, outputs to standard output."""


def audio(seconds: float, rate: int) -> np.ndarray:
    """Sound of `seconds` seconds, from -1 to 1."""
    random, time = np.random.default_rng(SEED), np.arange(int(seconds * rate)) / rate
    sound = 0.02 * random.normal(0, 1, len(time))
    for _ in range(5):
        base, depth, speed, phase = random.uniform((90, 20, 0.05, 0), (2500, 400, 0.6, 2 * np.pi))
        beat = np.clip(np.sin(2 * np.pi * SYLLABLE * random.uniform(0.5, 1.5) * time + phase), 0, 1)
        pitch = base + depth * np.sin(2 * np.pi * speed * time)
        sound += 0.25 * beat * np.sin(2 * np.pi * np.cumsum(pitch) / rate)
    pauses = np.sin(2 * np.pi * time / 17) > -0.6
    return np.clip(sound * pauses, -1, 1).astype(np.float32)


def bands_of(sound: np.ndarray, count: int, hop: int) -> np.ndarray:
    """The log energies of `count` bands of each hop, from 0 to 1."""
    frames = sound[: len(sound) // hop * hop].reshape(-1, hop)
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(hop), axis=1)))
    edges = np.unique(np.geomspace(1, power.shape[1], count + 1).astype(int))
    edges = np.linspace(1, power.shape[1], count + 1).astype(int) if len(edges) <= count else edges
    energies = np.log1p(1e3 * np.add.reduceat(power, edges[:-1], axis=1))
    return energies / energies.max()


def frames_of(tensor: Tensor, sound: np.ndarray, hop: int, bands: bool) -> np.ndarray:
    """The frames of the first input, in its type."""
    padded = np.concatenate([np.zeros(max(tensor.elements - hop, 0), np.float32), sound])
    windows = np.lib.stride_tricks.sliding_window_view(padded, tensor.elements)[::hop]
    real = bands_of(sound, tensor.elements, hop) if bands else windows
    if tensor.dtype != "float32":
        limits = np.iinfo(tensor.dtype)
        real = np.rint(real * (limits.max - limits.min) + limits.min if bands else real * limits.max)
    return np.ascontiguousarray(real, tensor.dtype).reshape(-1, *tensor.shape)


def on_device(built: Build, net: Net, cases: Cases, count: int, on: str | None) -> Iterator[np.ndarray]:
    """The first output of each of the first `count` frames."""
    with open_target(built, on) as target:
        for frame in range(count):
            yield run_round(target.session, net, cases, (frame,), observe=False)[0][0]


def in_library(built: Build, net: Net, inputs: Sequence[np.ndarray], folder: Path) -> np.ndarray:
    """The first output of all frames by the exported library, compiled for this machine."""
    exported = api.export(built.folder, folder / "lib", portable=True)
    header = (folder / "lib" / f"{exported.name}.h").read_text()
    takes = re.findall(r"(\w+_input_\w+)\(void\)", header)
    gives = re.findall(r"(\w+_output_\w+)\(void\)", header)[0]
    result = net.tensor(net.outputs[0])
    sizes = [net.tensor(name).bytes for name in net.inputs]
    reads = " && ".join(f"fread({name}(), 1, {size}, stdin) == {size}" for name, size in zip(takes, sizes, strict=True))
    program = DRIVER.format(name=exported.name, reads=reads, gives=gives, bytes=result.bytes)
    (folder / "lib/stream.c").write_text(program)
    sources = [name for name in exported.files if name.endswith(".c") and "/" not in name]
    libm = data_folder("firmware") / "libm"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-I.", f"-I{libm}"]
    sources += ["stream.c", *map(str, sorted(libm.glob("*.c")))]
    command = [shutil.which("cc") or "clang", *flags, *sources, "-lm", "-o", "stream"]
    subprocess.run(command, cwd=folder / "lib", check=True)
    frames = b"".join(array[frame].tobytes() for frame in range(len(inputs[0])) for array in inputs)
    made = subprocess.run([folder / "lib/stream"], input=frames, capture_output=True, check=True).stdout
    return np.frombuffer(made, result.dtype).reshape(-1, *result.shape)


def in_tflite_micro(model: Path, frames: np.ndarray) -> np.ndarray | None:
    """The first output of all frames by TensorFlow Lite Micro, or None if not installed."""
    try:
        from tflite_micro.python.tflite_micro import runtime  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    interpreter = runtime.Interpreter.from_file(str(model), arena_size=1 << 22)
    found = []
    for frame in frames:
        interpreter.set_input(frame, 0)
        interpreter.invoke()
        found.append(interpreter.get_output(0))
    return np.stack(found)


def told(name: str, got: np.ndarray, wanted: np.ndarray, since: float) -> bool:
    """Print how many frames differ from the reference. Return whether none does."""
    wanted = wanted[: len(got)]
    other = int((got.view(np.uint8) != wanted.view(np.uint8)).any(axis=tuple(range(1, got.ndim))).sum())
    verdict = "exact" if not other else f"{other:,} frames DIFFER"
    print(f"{name:24} {len(got):>8,} frames, {verdict}, in {monotonic() - since:.0f} s", flush=True)
    return not other


def told_by_minute(name: str, made: Iterator[np.ndarray], wanted: np.ndarray, minute: int, since: float) -> bool:
    """Compare outputs with the reference frame by frame, and print the agreement after each minute of the stream."""
    found, exact = list[np.ndarray](), True
    for frame, got in enumerate(made, 1):
        found.append(got)
        if frame % minute == 0:
            exact &= told(name, np.stack(found[-minute:]), wanted[frame - minute : frame], since)
    return told(f"{name}, the whole", np.stack(found), wanted, since) and exact


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--device-seconds", type=float, default=600)
    parser.add_argument("--hop", type=int, default=320)
    parser.add_argument("--bands", action="store_true")
    parser.add_argument("--rate", type=int, default=16000)
    parser.add_argument("--state", action="append")
    parser.add_argument("--float", action="store_true")
    parser.add_argument("--input", action="append")
    parser.add_argument("--value", action="append", default=[])
    parser.add_argument("--board", default="pe-mesh")
    parser.add_argument("--on")
    parser.add_argument("--pes", type=int)
    given = parser.parse_args()
    options = api.Options(
        pes=given.pes,
        states=parsed_states(given.state),
        in_float=given.float,
        input_shapes=parsed_shapes(given.input),
    )
    with tempfile.TemporaryDirectory() as scratch:
        built = api.build(given.model, board=given.board, output=Path(scratch) / "out", options=options)
        return int(not _compared(given, built, Path(scratch)))


def _compared(given: argparse.Namespace, built: Build, scratch: Path) -> bool:
    net, values = built.net(), dict(text.rsplit(":", 1) for text in given.value)
    first, *others = map(net.tensor, net.inputs)
    frames = frames_of(first, audio(given.seconds, given.rate), given.hop, given.bands)
    rest = (np.full((len(frames), *each.shape), float(values[each.name]), each.dtype) for each in others)
    cases = Cases((frames, *rest), {}, sequence=len(frames))
    kept = sum(net.tensor(state.input).bytes for state in net.states)
    memory = [f"{pe['code']:,}" for pe in built.manifest.summary["memory"]]
    print(f"{net.name}: {len(net.states)} states of {kept:,} bytes; {', '.join(memory)} bytes of code", flush=True)
    since = monotonic()
    wanted = np.stack([values[net.outputs[0]] for values in reference_of(net, cases)])
    varied = len(np.unique(wanted))
    print(f"{'reference':24} {len(wanted):>8,} frames, {varied:,} different values, in {monotonic() - since:.0f} s")
    since = monotonic()
    exact = told("library, on this machine", in_library(built, net, cases.inputs, scratch), wanted, since)
    since, count = monotonic(), int(len(frames) * min(given.device_seconds / given.seconds, 1))
    made, minute = on_device(built, net, cases, count, given.on), 60 * given.rate // given.hop
    exact &= told_by_minute(given.on or built.board.runs_on[0], made, wanted, minute, since)
    micro = in_tflite_micro(given.model, frames) if given.model.suffix == ".tflite" else None
    if micro is not None:
        told("TensorFlow Lite Micro", micro.reshape(wanted.shape), wanted, since)
    return exact


if __name__ == "__main__":
    raise SystemExit(main())
