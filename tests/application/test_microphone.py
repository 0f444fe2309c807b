"""Audio features: equal to TFLite Micro's signal ops in sequence, and close to the same computation in real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from frontend.tflite_models import Model, run_micro
from npukit.application.apply import applied
from npukit.application.declared import Declared, SensorInput, parsed_input
from npukit.application.inputs import real_numbers, seen_by_steps, sensor_shape
from npukit.application.sounds import cosines, filter_bank, hann
from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.net import Net
from npukit.net.ops import TvmCode
from npukit.net.parse import parse_net
from npukit.net.receptive import cuttable_axes, needs
from npukit.net.reference import evaluate, run_reference

SMALL = "window=80 hop=50 rate=4000 low=100 high=1900"


def declared(words: str) -> SensorInput:
    return parsed_input(f"int16 {words}")


def sound(count: int) -> np.ndarray:
    """Tones in noise, of rising loudness."""
    random, time = np.random.default_rng(count), np.arange(count)
    tones = np.sin(time * 0.31) + np.sin(time * time * 1e-4)
    return np.clip(np.exp(time / count * 9) * (tones + random.normal(0, 0.3, count)), -32768, 32767).astype(np.int16)


def by_micro(given: SensorInput, mels: int, points: int, frames: np.ndarray) -> list[np.ndarray]:
    """Logarithms of a filter bank's energies for each frame, by TFLite Micro's kernels."""
    model, size = Model(), given.window
    weights, rests, *places = filter_bank(given, points, mels)
    model.inputs.append(model.tensor("x", (size,), dtype="int16"))

    def op(kind: str, inputs: list[str], results: dict[str, tuple[tuple[int, ...], str]], **options: Any) -> None:
        names = [model.tensor(name, shape, dtype=dtype) for name, (shape, dtype) in results.items()]
        model.custom(kind, inputs, names, bytes(flexbuffers.Dumps(options)))

    op("SignalWindow", ["x", model.constant("window", hann(size))], {"w": ((size,), "int16")}, shift=12)
    op("SignalFftAutoScale", ["w"], {"s": ((size,), "int16"), "bits": ((), "int32")})
    op("SignalRfft", ["s"], {"f": ((2 * points + 2,), "int16")}, T=7, fft_length=2 * points)
    op("SignalEnergy", ["f"], {"e": ((points + 1,), "uint32")}, start_index=0, end_index=points + 1)
    tables = [model.constant(f"t{at}", table) for at, table in enumerate((weights, rests, *places))]
    op("SignalFilterBank", ["e", *tables], {"b": ((mels,), "uint64")}, num_channels=mels)
    op("SignalFilterBankSquareRoot", ["b", "bits"], {"r": ((mels,), "uint32")})
    correction = (2 * points).bit_length() - 1 - 6
    options = {"input_correction_bits": correction, "output_scale": 64}
    op("SignalFilterBankLog", ["r"], {"l": ((mels,), "int16")}, **options)
    return [result[0] for result in run_micro(model.bytes(["l"]), [[frame] for frame in frames])]


def windows(samples: np.ndarray, given: SensorInput, count: int) -> np.ndarray:
    return np.stack([samples[at * given.hop : at * given.hop + given.window] for at in range(count)])


@pytest.mark.parametrize(("words", "mels", "points"), [(SMALL, 9, 64), ("", 40, 256)])
def test_log_mel_is_tflite_micros(words: str, mels: int, points: int) -> None:
    given, rows = declared(f"features=log_mel {words}"), 6
    samples = sound(5 * given.hop + given.window)
    (got,) = seen_by_steps(given, samples[None], (1, rows, mels))
    np.testing.assert_array_equal(got[0], by_micro(given, mels, points, windows(samples, given, rows)))


def test_log_mel_is_near_that_of_real_numbers() -> None:
    """32 times the natural logarithm of the energy in each triangle, compared for loud triangles."""
    given = declared("features=log_mel")
    samples = sound(8 * given.hop + given.window)
    (got,) = seen_by_steps(given, samples[None], (1, 9, 40))
    spectra = np.fft.rfft(windows(samples, given, 9).astype(float) * hann(given.window) / 4096, 512)
    heights = 1127 * np.log1p(np.arange(257) * 16000 / 512 / 700)
    edges = 1127 * np.log1p(np.array([125.0, 7500.0]) / 700)
    centres = np.linspace(edges[0], edges[1], 42)[1:-1]
    triangles = np.maximum(0, 1 - np.abs(heights[:, None] - centres) / (centres[1] - centres[0]))
    real = 32 * np.log(np.abs(spectra) ** 2 @ triangles + 1e-9)
    loud = real > np.maximum(real.max(axis=1, keepdims=True) - 64 * np.log(50), 200)
    assert loud.sum() > 100
    assert np.abs(got[0] - real)[loud].mean() < 3, "a step in 64 is 0.14 dB"
    assert np.quantile(np.abs(got[0] - real)[loud], 0.9) < 8


def test_mfcc_are_cosines_of_log_mel() -> None:
    samples = sound(5 * 50 + 80)
    (logs,) = seen_by_steps(declared(f"features=log_mel {SMALL}"), samples[None], (1, 6, 12))
    (got,) = seen_by_steps(declared(f"features=mfcc mels=12 {SMALL}"), samples[None], (1, 6, 5))
    want = (logs[0] @ cosines(5, 12).astype(int).T + 8192) >> 14
    np.testing.assert_array_equal(got[0], want)
    assert np.abs(cosines(12, 12) @ cosines(12, 12).T.astype(float) / (1 << 28) - np.eye(12)).max() < 1e-3


def model(shape: str, zero: int = 0) -> Net:
    row = f"int8[{shape}] scale 8.0 zero {zero}"
    return parse_net(f"net n\ninput x: {row}\nop y: {row} = requantize(x)\noutput y\n", {})


@pytest.mark.parametrize(("features", "new"), [("log_mel", 1), ("log_mel", 2), ("log_mel", 5), ("mfcc mels=12", 1)])
def test_frame_after_frame_the_model_sees_the_last_windows(features: str, new: int) -> None:
    words = f"features={features} {SMALL}"
    net = applied(model("1,6,9,1", -5), Declared(input=(declared(f"{words} new={new} mean=100 std=2"),)), "NHWC")
    samples, before, rows = sound(8 * new * 50), None, []
    for frame in samples.reshape(8, 1, new * 50):
        before = evaluate(net, [frame], before)
        rows.append(before["y"])
    silence = np.concatenate([np.zeros(30, np.int16), samples])
    whole = applied(model(f"1,{8 * new},9,1", -5), Declared(input=(declared(f"{words} mean=100 std=2"),)), "NHWC")
    (want,) = run_reference(whole, [silence[None]])
    last = np.concatenate([np.full((6, 9), np.rint(-100 / 2 / 8) - 5), want[0, ..., 0]])
    for number, got in enumerate(rows):
        np.testing.assert_array_equal(got[0, ..., 0], last[(number + 1) * new : (number + 1) * new + 6])


def test_calibration_takes_its_cases_as_one_stream() -> None:
    given = declared(f"features=log_mel {SMALL} new=2 scale=0.5")
    assert sensor_shape(given, (1, 6, 9), "NHWC") == (1, 100)
    samples = sound(400).reshape(4, 1, 100)
    got = real_numbers(given, samples, (1, 6, 9), "NHWC")
    assert not got[0, 0, :4].any(), "silence at first"
    np.testing.assert_array_equal(got[1, 0, 2:4], got[0, 0, 4:])
    np.testing.assert_array_equal(got[3, 0, :4], got[2, 0, 2:])


def test_windows_in_a_row_that_says_how_many_features() -> None:
    net = applied(model("1,54"), Declared(input=(declared(f"features=log_mel mels=9 {SMALL}"),)), "NHWC")
    assert net.tensor("x").shape == (1, 5 * 50 + 80)


@pytest.mark.parametrize(
    ("words", "shape", "message"),
    [
        ("log_mel mels=7", "1,54", r"an input of shape \[1, 54\] is not windows with log_mel each"),
        ("mfcc", "1,54", "is not windows with mfcc each"),
        ("mfcc mels=5", "1,6,9", "no 9 coefficients of 5 channels"),
        ("log_mel new=7", "1,6,9", "the model takes 6 windows, fewer than the 7"),
        ("log_mel new=1 hop=90", "1,6,9", "leave samples out"),
        ("log_mel high=3000", "1,6,9", "a filter bank from 100 to 3000 Hz is not of 4000 Hz"),
    ],
)
def test_what_is_no_sound_of_the_model(words: str, shape: str, message: str) -> None:
    small = " ".join(word for word in SMALL.split() if word.split("=")[0] not in words)
    with pytest.raises(NpukitError, match=message):
        applied(model(shape), Declared(input=(declared(f"features={words} {small}"),)), "NHWC")


def test_windows_of_a_clip_are_divided_between_pes() -> None:
    """Each window needs only its own samples."""
    net = applied(model("1,6,9,1"), Declared(input=(declared(f"features=log_mel {SMALL}"),)), "NHWC")
    op = net.ops[0]
    assert cuttable_axes(net, op) == (0,)
    (held,) = needs(net, op, Box((2, 0), (4, 9)))
    assert (held.start, held.stop) == ((0, 100), (1, 230))


@pytest.mark.parametrize("new", [1, 3, 5])
def test_new_windows_are_shared_by_pes_step_by_step_if_they_are_few(new: int) -> None:
    net = applied(model("1,6,9,1"), Declared(input=(declared(f"features=mfcc mels=12 {SMALL} new={new}"),)), "NHWC")
    made = [op for op in net.ops if isinstance(op.attributes, TvmCode) and net.tensor(op.output).elements > 1]
    assert [op.name for op in made if not cuttable_axes(net, op)] == ([] if new < 5 else ["mfcc_0"])
