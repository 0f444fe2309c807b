"""TFLite Micro's signal ops: equal to TFLite Micro's kernels to the last bit, over many frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from frontend.tflite_models import Model, run_micro
from npukit.errors import NpukitError
from npukit.net.receptive import cuttable_axes
from npukit.net.reference import evaluate
from npukit.quantize.models import load_model

INT16, INT32 = 7, 2
"""TFLite's codes of the types."""


class Signals:
    """A model of a single signal op, and its input frames."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.model, self.random = Model(), np.random.default_rng(len(kind))
        self.kind, self.options, self.names, self.results = kind, options, list[str](), list[str]()
        self.frames: list[list[np.ndarray]] = [[] for _ in range(7)]

    def given(self, make: Callable[[int], np.ndarray]) -> Signals:
        """Adds an input. `make` returns the frame with a given number."""
        arrays = [make(number) for number in range(len(self.frames))]
        name = f"x{len(self.names)}"
        self.model.inputs.append(self.model.tensor(name, arrays[0].shape, dtype=str(arrays[0].dtype)))
        for frame, array in zip(self.frames, arrays, strict=True):
            frame.append(array)
        self.names.append(name)
        return self

    def random_integers(self, shape: Sequence[int], dtype: str, bits: int = 0) -> Signals:
        """Adds random integers: small in the first frame, growing, of the whole range in the last frame."""
        most = bits or np.iinfo(dtype).bits
        low = int(np.iinfo(dtype).min < 0)

        def make(number: int) -> np.ndarray:
            end = 1 << max(most * (number + 1) // len(self.frames) - low, 1)
            return self.random.integers(-end * low, end, shape, dtype="int64" if end < 1 << 63 else "uint64").astype(
                dtype
            )

        return self.given(make)

    def constant(self, value: np.ndarray) -> Signals:
        self.names.append(self.model.constant(f"c{len(self.names)}", value))
        return self

    def gives(self, shape: Sequence[int], dtype: str = "int16") -> Signals:
        self.results.append(self.model.tensor(f"y{len(self.results)}", shape, dtype=dtype))
        return self

    def bytes(self) -> bytes:
        self.model.custom(self.kind, self.names, self.results, bytes(flexbuffers.Dumps(self.options)))
        return self.model.bytes(self.results)


def bank() -> Signals:
    """Five filters over thirty frequencies."""
    made = Signals("SignalFilterBank", num_channels=5).random_integers((30,), "uint32")
    widths = np.array([3, 5, 4, 6, 2, 7], np.int16)
    firsts = np.cumsum(widths, dtype=np.int16) - widths
    weights = [made.random.integers(0, 4097, 27, np.int16) for _ in range(2)]
    for table in (*weights, firsts + np.int16(2), firsts, widths):
        made.constant(table)
    return made.gives((5,), "uint64")


def spectral_subtraction(*, clamping: bool) -> Signals:
    options = {"alternate_one_minus_smoothing": 15401, "alternate_smoothing": 983, "clamping": clamping}
    options |= {"min_signal_remaining": 819, "num_channels": 9, "one_minus_smoothing": 15975, "smoothing": 409}
    options |= {"smoothing_bits": 10, "spectral_subtraction_bits": 14}
    made = Signals("SignalFilterBankSpectralSubtraction", **options)
    return made.random_integers((9,), "uint32").gives((9,), "uint32").gives((9,), "uint32")


def pcan() -> Signals:
    made = Signals("SignalPCAN", snr_shift=6).random_integers((40,), "uint32").random_integers((40,), "uint32")
    return made.constant(made.random.integers(-(1 << 15), 1 << 15, 125).astype(np.int16)).gives((40,), "uint32")


def framer(size: int, step: int, count: int, *, prefill: bool) -> Signals:
    made = Signals("SignalFramer", frame_size=size, frame_step=step, prefill=prefill)
    return made.random_integers((2, count * step), "int16").gives((2, count, size)).gives((), "bool")


MODELS = {
    "delay": lambda: Signals("SignalDelay", delay_length=5).random_integers((2, 3), "int16").gives((2, 3)),
    "energy": lambda: (
        Signals("SignalEnergy", end_index=9, start_index=0).random_integers((18,), "int16").gives((9,), "uint32")
    ),
    "filter bank": bank,
    "logarithm": lambda: (
        Signals("SignalFilterBankLog", input_correction_bits=3, output_scale=64)
        .random_integers((50,), "uint32")
        .gives((50,))
    ),
    "overlap": lambda: (
        Signals("SignalOverlapAdd", T=INT16, frame_step=3).random_integers((2, 4, 8), "int16").gives((2, 12))
    ),
    "pcan": pcan,
    "prefilled framer": lambda: framer(7, 3, 2, prefill=True),
    "scale": lambda: Signals("SignalFftAutoScale").random_integers((20,), "int16").gives((20,)).gives((), "int32"),
    "spectral subtraction": lambda: spectral_subtraction(clamping=False),
    "spectral subtraction that is clamped": lambda: spectral_subtraction(clamping=True),
    "square root": lambda: (
        Signals("SignalFilterBankSquareRoot")
        .random_integers((60,), "uint64")
        .given(lambda number: np.array(number, np.int32))
        .gives((60,), "uint32")
    ),
    "transform of 128": lambda: (
        Signals("SignalRfft", T=INT16, fft_length=128).random_integers((2, 100), "int16").gives((2, 130))
    ),
    "transform of 512": lambda: (
        Signals("SignalRfft", T=INT16, fft_length=512).random_integers((512,), "int16").gives((514,))
    ),
    "transform of 2048": lambda: (
        Signals("SignalRfft", T=INT16, fft_length=2048).random_integers((1500,), "int16").gives((2050,))
    ),
    "transform of 32 bits": lambda: (
        Signals("SignalRfft", T=INT32, fft_length=64).random_integers((3, 64), "int32").gives((3, 66), "int32")
    ),
    "transform of four": lambda: (
        Signals("SignalRfft", T=INT16, fft_length=4).random_integers((4,), "int16").gives((6,))
    ),
    "window": lambda: (
        Signals("SignalWindow", shift=12)
        .random_integers((2, 30), "int16")
        .constant(np.arange(-15, 15, dtype=np.int16) * np.int16(2000))
        .gives((2, 30))
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_tflite_micro(name: str, tmp_path: Path) -> None:
    signals = MODELS[name]()
    assert_equal(signals, tmp_path, lambda _: True)


@pytest.mark.parametrize("places", [(), (3,), (0, 8), (5, 14), (19,), (17, 18)])
def test_the_smallest_number_is_forgotten_with_what_came_before(places: tuple[int, ...], tmp_path: Path) -> None:
    """TFLite Micro takes -32768 as less than any number, wherever the parts of the samples begin."""

    def frame(number: int) -> np.ndarray:
        made = np.arange(20, dtype=np.int16) * np.int16((-1) ** number * 7 * number) - np.int16(9 * number)
        made[list(places)] = -32768
        return made

    made = Signals("SignalFftAutoScale").given(frame).gives((20,)).gives((), "int32")
    assert_equal(made, tmp_path, lambda _: True)


@pytest.mark.parametrize(
    "name", ["energy", "filter bank", "logarithm", "pcan", "scale", "square root", "transform of 512"]
)
def test_pes_share_the_rows_of_an_op(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(MODELS[name]().bytes())
    net = load_model(tmp_path / "model.tflite").net
    large = [op for op in net.ops if net.tensor(op.output).elements > 1]
    assert large
    assert all(cuttable_axes(net, op) for op in large if op.kind != "reshape")


@pytest.mark.parametrize(("size", "step"), [(7, 3), (6, 3), (9, 2)])
def test_frames_count_once_there_are_enough_samples(size: int, step: int, tmp_path: Path) -> None:
    assert_equal(framer(size, step, 1, prefill=False), tmp_path, lambda results: bool(results[1]))


def test_stacked_frames_count_once_there_are_enough(tmp_path: Path) -> None:
    options = {"num_channels": 3, "stacker_left_context": 1, "stacker_right_context": 2, "stacker_step": 2}
    made = Signals("SignalStacker", **options).random_integers((3,), "int16").gives((12,)).gives((), "bool")
    assert_equal(made, tmp_path, lambda results: bool(results[1]))


def assert_equal(signals: Signals, folder: Path, counts: Callable[[Sequence[np.ndarray]], bool]) -> None:
    """Checks that all frames selected by `counts` are equal."""
    data, seen = signals.bytes(), 0
    (folder / "model.tflite").write_bytes(data)
    net, before = load_model(folder / "model.tflite").net, None
    ends = len(signals.results)
    for frame, want in zip(signals.frames, run_micro(data, signals.frames), strict=True):
        before = evaluate(net, frame, before)
        got = [before[name] for name in net.outputs[:ends]]
        if counts(want):
            assert all(map(np.array_equal, got, want)), [each.ravel()[:8] for each in (*got, *want)]
            seen += 1
        else:
            assert not counts(got)
    assert seen > 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: Signals("SignalRfft", T=INT16, fft_length=96).random_integers((96,), "int16").gives((98,)),
            "it transforms 96 numbers of int16; npukit reads powers of two",
        ),
        (
            lambda: (
                Signals("SignalEnergy", end_index=10, start_index=0)
                .random_integers((18,), "int16")
                .gives((9,), "uint32")
            ),
            "it takes other energies than the 9 of its input",
        ),
        (lambda: framer(1, 1, 5000, prefill=True), "its result has 5,000 steps to unroll"),
        (lambda: Signals("SignalDelay", delay_length=1 << 40).random_integers((3,), "int16").gives((3,)), "elements"),
    ],
)
def test_an_op_that_reaches_beyond_its_input_is_refused(
    made: Callable[[], Signals], message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.tflite").write_bytes(made().bytes())
    with pytest.raises(NpukitError, match=message):
        load_model(tmp_path / "model.tflite")
