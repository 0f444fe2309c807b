"""Sound as a microphone gives it: the features of its windows, in integers as TensorFlow Lite Micro has them.

`docs/preprocessing.md` has the formulas; the C is that of its signal ops, `templates/ops/signal`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from npukit.application.declared import SensorInput
from npukit.application.draft import Draft
from npukit.errors import NpukitError
from npukit.net.c_code.signals import LOGARITHMS, fourier_bytes, fourier_tables, fourier_words
from npukit.net.c_code.template import body_of, text_of
from npukit.net.limits import STEPS
from npukit.net.ops import TvmCode
from npukit.net.tensor import Quantization, Tensor

KIND, WHY = "int16", "features of sound"
WINDOW_BITS, WEIGHT_BITS, COSINE_BITS = 12, 12, 14
UNIT = 64
"""Features in a unit of the natural logarithm."""


@dataclass
class _Features:
    """The C that makes `count` features of each of some windows, and its operands: samples, then tables."""

    declared: SensorInput
    draft: Draft
    windows: int
    count: int
    operands: list[str]
    kept: int
    work: dict[str, int] = field(default_factory=dict)
    work_bytes: int = 0

    @property
    def mels(self) -> int:
        return self.count if self.declared.features == "log_mel" else self.declared.mels

    @property
    def points(self) -> int:
        """The complex numbers of the transform: half of the power of two that holds a window."""
        return max(1 << (self.declared.window - 1).bit_length(), 8) // 2

    def table(self, values: np.ndarray) -> str:
        """A constant operand, by the name that the C has for it."""
        name = self.draft.new_name(f"{self.operands[0]}_table")
        self.operands.append(self.draft.constant(name, values))
        return f"p{len(self.operands) - 1}"

    def code(self) -> str:
        place = f"place < {self.kept} ? p0[place] : p1[place - {self.kept}]" if self.kept else "p0[place]"
        self._reserve("work", fourier_bytes(self.points, KIND))
        for name, size in (("windowed", 2 * self.declared.window), ("transformed", 4 * self.points + 4)):
            self._reserve(name, size)
        for name, size in (("energies", 4 * self.points + 4), ("sums", 8 * self.mels), ("roots", 4 * self.mels)):
            self._reserve(name, size)
        words = {**self.work, "windows": self.windows, "window": self.declared.window, "hop": self.declared.hop}
        return body_of(text_of("signal/features.c"), {**words, "SAMPLE": place, **self._parts()})

    def _reserve(self, name: str, size: int) -> None:
        self.work[f"{name}_at"] = self.work_bytes
        self.work_bytes += (size + 7) // 8 * 8

    def _parts(self) -> dict[str, str]:
        """The C of the steps, in the order of their tables."""
        window, points, mels = self.declared.window, self.points, self.mels
        samples = {"p0": "windowed", "output": "windowed", "p0_size": window}
        parts = {"WINDOW": ("window", samples | {"p1": self.table(hann(window)), "p1_size": window, "shift": 12})}
        parts["SCALE_BITS"] = "scale_bits", samples | {"output": "power"}
        parts["SCALED"] = "scaled", samples | {"p1": "power"}
        turns = dict(zip(("p1", "p2", "p3"), map(self.table, fourier_tables(points, KIND)), strict=True))
        sizes = {**fourier_words(points, KIND), "rows": 1, "length": window}
        parts["RFFT"] = "rfft", {**turns, **sizes, "p0": "windowed", "output": "transformed"}
        ends = {"output_size": points + 1, "start_index": 0, "end_index": points + 1}
        parts["ENERGY"] = "energy", {"p0": "transformed", "output": "energies", **ends}
        bank = dict(zip(("p1", "p2", "p3", "p4", "p5"), map(self.table, self.bank()), strict=True))
        parts["FILTER_BANK"] = "filter_bank", {**bank, "p0": "energies", "output": "sums", "num_channels": mels}
        parts["SQUARE_ROOT"] = "square_root", {"p0": "sums", "p1": "power", "output": "roots", "p0_size": mels}
        return {
            name: body_of(text_of(f"signal/{file}.c"), words) for name, (file, words) in parts.items()
        } | self._ends()

    def _ends(self) -> dict[str, str]:
        """The logarithms, and the cosine transform of these where it is asked for."""
        mels, bits = self.mels, max((2 * self.points).bit_length() - 1 - WEIGHT_BITS // 2, 0)
        logs = {"p0": "roots", "p1": self.table(LOGARITHMS), "output": "logarithms", "p0_size": mels}
        words = {
            "LOG": body_of(text_of("signal/log.c"), {**logs, "input_correction_bits": bits, "output_scale": UNIT}),
            "LOGARITHMS": f"&output[number_of_window * {self.count}]",
            "COSINES": "",
        }
        if self.declared.features == "mfcc":
            self._reserve("logarithms", 2 * mels)
            cosine = {"p0": "logarithms", "p1": self.table(cosines(self.count, mels)), "p0_size": mels}
            words["COSINES"] = body_of(text_of("signal/cosines.c"), {**cosine, "count": self.count})
            words["LOGARITHMS"] = f"(int16_t *)((void *)&work[{self.work['logarithms_at']}])"
        return words

    def bank(self) -> tuple[np.ndarray, ...]:
        return filter_bank(self.declared, self.points, self.mels)


def with_sound(draft: Draft, declared: SensorInput, name: str, shape: tuple[int, ...], unit: float) -> str:
    """The features of new windows, of 16 bits, of the microphone's samples, which become the tensor `name`."""
    rows, count = rows_of(declared, shape)
    windows = declared.new or rows
    _check(declared, rows, windows, count)
    kept = declared.window - declared.hop if declared.new else 0
    length = windows * declared.hop if declared.new else (rows - 1) * declared.hop + declared.window
    draft.tensors[name] = Tensor(name, (1, length), KIND, Quantization((unit,), (0,)))
    before = [_begun(draft, name, kept)] if kept else []
    features = _Features(declared, draft, windows, count, [*before, name], kept)
    code = features.code()
    made = draft.new_name(str(declared.features))
    draft.tensors[made] = Tensor(made, (windows, count), KIND)
    steps = (0, 0) if kept or windows == 1 else (declared.hop, declared.window)
    attributes = TvmCode(str(declared.features), code, features.work_bytes, WHY, given=True, windows=steps)
    draft.op(draft.before, attributes, tuple(features.operands), None, output=made)
    if before:
        after = draft.new_name(f"{before[0]}_next")
        draft.tensors[after] = Tensor(after, (1, kept), KIND)
        _shifted(draft, before[0], name, after, np.zeros((1, kept), KIND))
    return made


def rows_of(declared: SensorInput, shape: tuple[int, ...]) -> tuple[int, int]:
    """The windows that a model takes, and the features of each."""
    sizes = [size for size in shape if size > 1]
    if len(sizes) == 2:
        return sizes[0], sizes[1]
    if len(sizes) > 2 or declared.features == "mfcc" or prod(shape) % declared.mels:
        raise NpukitError(f"an input of shape {list(shape)} is not windows with {declared.features} each")
    return prod(shape) // declared.mels, declared.mels


def _check(declared: SensorInput, rows: int, windows: int, count: int) -> None:
    if windows > rows:
        raise NpukitError(f"the model takes {rows} windows, fewer than the {windows} that are new in each frame")
    if declared.new and declared.hop > declared.window:
        raise NpukitError(f"windows of {declared.window} samples every {declared.hop} leave samples out")
    if declared.features == "mfcc" and count > declared.mels:
        raise NpukitError(f"there are no {count} coefficients of {declared.mels} channels")
    if not 0 <= declared.low < declared.high <= declared.rate / 2:
        raise NpukitError(f"a filter bank from {declared.low:g} to {declared.high:g} Hz is not of {declared.rate:g} Hz")
    STEPS.check(windows, "its features")


def with_windows_kept(draft: Draft, made: str, output: str, silent: np.ndarray) -> None:
    """All windows that a model takes, `output`: those of the frames before, and behind them the new ones."""
    wanted = draft.tensors[output]
    kept = draft.new_name(f"{output}_kept")
    draft.tensors[kept] = Tensor(kept, wanted.shape, wanted.dtype, wanted.quantization)
    rows = wanted.elements // silent.size
    _shifted(draft, kept, made, output, np.tile(silent.ravel(), rows).reshape(wanted.shape))


def _begun(draft: Draft, name: str, size: int) -> str:
    """Samples of the frames before."""
    kept = draft.new_name(f"{name}_kept")
    draft.tensors[kept] = Tensor(kept, (1, size), KIND)
    return kept


def _shifted(draft: Draft, kept: str, fresh: str, output: str, initial: np.ndarray) -> None:
    """The op by which new numbers come behind those kept: the last ones, which are kept for the next frame."""
    sizes = {"p0_size": draft.tensors[kept].elements, "p1_size": draft.tensors[fresh].elements}
    words = {**sizes, "output_size": sizes["p0_size"]}
    attributes = TvmCode("shifted", body_of(text_of("signal/shifted.c"), words), why=WHY, given=True)
    draft.op(draft.before, attributes, (kept, fresh), None, output=output)
    draft.state(kept, output, initial)


def hann(size: int) -> np.ndarray:
    """The window's factors in 1/4096."""
    angles = 2 * np.pi * (np.arange(size) + 0.5) / size
    return np.floor((0.5 - 0.5 * np.cos(angles)) * (1 << WINDOW_BITS) + 0.5).astype(np.int16)


def mel(frequency: np.ndarray | float) -> np.ndarray:
    return 1127 * np.log1p(np.asarray(frequency) / 700)


def filter_bank(declared: SensorInput, points: int, mels: int) -> tuple[np.ndarray, ...]:
    """Weights and what they leave, in 1/4096; of each channel its first frequency, its first weight, how many it has.

    Channels are triangles, as far from each other on the mel scale: what a frequency does not give to one of the two
    around it, it gives to the other.
    """
    low, high = mel(declared.low), mel(declared.high)
    centres = low + (high - low) / (mels + 1) * (np.arange(mels + 1) + 1)
    heights = mel(np.arange(points + 1) * (declared.rate / (2 * points)))
    first = int(np.searchsorted(heights, low))
    channels = np.searchsorted(heights, centres)
    begins = np.array([first, *channels[:-1]])
    used = np.arange(first, channels[-1])
    owners = np.searchsorted(centres, heights[used], side="right")
    shares = (centres[owners] - heights[used]) / ((high - low) / (mels + 1))
    weights, rests = (np.floor(each * (1 << WEIGHT_BITS) + 0.5).astype(np.int16) for each in (shares, 1 - shares))
    return (
        weights,
        rests,
        begins.astype(np.int16),
        (begins - first).astype(np.int16),
        (channels - begins).astype(np.int16),
    )


def cosines(count: int, mels: int) -> np.ndarray:
    """The factors of the cosine transform, orthonormal, in 1/16384."""
    rows = np.cos(np.pi * np.outer(np.arange(count), np.arange(mels) + 0.5) / mels) * np.sqrt(2 / mels)
    rows[0] /= np.sqrt(2)
    return np.rint(rows * (1 << COSINE_BITS)).astype(np.int16)
