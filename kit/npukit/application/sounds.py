"""A microphone's sound: features of windows, in integers, as in TensorFlow Lite Micro.

`docs/preprocessing.md` has the formulas. The C is from the signal ops, `templates/ops/signal`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import prod
from textwrap import indent
from typing import Any

import numpy as np

from npukit.application.declared import SensorInput
from npukit.application.draft import Draft
from npukit.errors import NpukitError
from npukit.net.c_code.function import body_of, text_of
from npukit.net.c_code.rows import EACH, LOOP_CYCLES, NO_STEPS, Steps, stated_cycles, stated_rows
from npukit.net.c_code.signals import (
    INDENT,
    LOGARITHMS,
    STEPS_OF,
    WINDOW_CYCLES,
    filter_bank_steps,
    fourier_parts,
    largest_steps,
    parts_of,
    scale_bits_steps,
)
from npukit.net.limits import STEPS
from npukit.net.ops import Concat, RowReads, TvmCode
from npukit.net.tensor import Quantization, Tensor

KIND, WHY = "int16", "features of sound"
WINDOW_BITS, WEIGHT_BITS, COSINE_BITS = 12, 12, 14
UNIT = 64
"""Steps of a feature in one unit of the natural logarithm."""
_FEW = 4
"""Limit on new windows with an op for each step, whose rows PEs share. A single op on a single PE computes more windows
in a loop, to keep plans short."""
_SMALL = 64
"""Largest result in bytes with an array of its own on the stack."""


@dataclass(frozen=True)
class _Step:
    """C that computes a result from other results and tables, in this order p0, p1, ... `steps`: its loop over rows."""

    name: str
    code: str
    reads: tuple[str, ...]
    tables: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    dtype: str = KIND
    work_bytes: int = 0
    steps: Steps = NO_STEPS

    @property
    def cycles(self) -> int:
        return stated_cycles(self.steps, self.shape)

    @property
    def bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def within(self, names: Mapping[str, str], tables: int) -> str:
        """The C as a block within other C. `names`: the results' names. `tables`: number of tables before its own."""
        operands = [*(names[each] for each in self.reads), *(f"p{tables + at}" for at in range(len(self.tables)))]
        words = {f"p{place}": operand for place, operand in enumerate(operands)}
        body = body_of(self.code, {**words, "output": names[self.name]})
        return indent(f"{{\n{indent(body, INDENT)}}}\n", INDENT)


def _step(name: str, reads: str, shape: tuple[int, ...], dtype: str = KIND, *tables: np.ndarray, **words: Any) -> _Step:
    """A step with the C of a TensorFlow Lite Micro op of a similar name."""
    file = words.pop("file", name)
    steps: Steps = words.pop("steps", STEPS_OF.get(file, NO_STEPS))
    code = body_of(text_of(f"signal/{file}.c"), {**words, "output_size": prod(shape)})
    return _Step(name, code, tuple(reads.split()), tables, shape, dtype, steps=steps)


@dataclass(frozen=True)
class _Features:
    """The computation of `count` features of `windows` windows. `kept` samples are of earlier frames."""

    declared: SensorInput
    windows: int
    count: int
    kept: int

    @property
    def mels(self) -> int:
        return self.count if self.declared.features == "log_mel" else self.declared.mels

    @property
    def points(self) -> int:
        """The complex numbers of the transform: half of the smallest power of two that holds a window, at least 4."""
        return max(1 << (self.declared.window - 1).bit_length(), 8) // 2

    @property
    def given(self) -> list[str]:
        return ["kept", "samples"] if self.kept else ["samples"]

    def steps(self, start: int | str) -> list[_Step]:
        """The steps of the window at sample `start`."""
        size, points, mels, parts = self.declared.window, self.points, self.mels, parts_of(self.declared.window)
        part = size // parts
        sizes = {"p0_size": size, "p1_size": parts, "part_size": part}
        bits = "windowed largest", (1,), "int32"
        begun = [
            self._windowed(start),
            _step("largest", "windowed", (parts,), "int32", part_size=part, steps=largest_steps(part)),
            _step("power", *bits, file="scale_bits", steps=scale_bits_steps(parts), **sizes),
            _step("scaled", "windowed power", (size,), p0_size=size),
        ]
        for name, each in fourier_parts(points, KIND, size).items():
            reads = (begun[-1].name,)
            begun.append(_Step(name, each.code, reads, each.tables, each.shape, KIND, each.work_bytes, each.steps))
        bank, ends = filter_bank(self.declared, points, mels), {"start_index": 0, "end_index": points + 1}
        channels = filter_bank_steps(bank[-1])
        begun += [
            _step("energies", begun[-1].name, (points + 1,), "uint32", file="energy", **ends),
            _step("sums", "energies", (mels,), "uint64", *bank, file="filter_bank", num_channels=mels, steps=channels),
            _step("roots", "sums power", (mels,), "uint32", file="square_root", p0_size=mels),
        ]
        return begun + self._ends()

    def _windowed(self, start: int | str) -> _Step:
        """The samples of the window at sample `start` times the Hann window. The sample is a number, or C."""
        old, new = f"p0[{start} + at]", f"p1[{start} + at - {self.kept}]"
        sample = f"({start} + at < {self.kept} ? {old} : {new})" if self.kept else old
        words: dict[str, Any] = {"SAMPLE": sample, "FACTOR": f"p{len(self.given)}[at]", "shift": WINDOW_BITS}
        factors, kept = hann(self.declared.window), self.kept
        first = start if isinstance(start, int) else 0
        windows = ((1, 1, first), *([(1, 1, first - kept)] if kept else []), EACH)
        words["steps"] = Steps(1, windows, alike=not kept, cycles=WINDOW_CYCLES + 6 * bool(kept))
        return _step("windowed", " ".join(self.given), factors.shape, KIND, factors, file="window", **words)

    def _ends(self) -> list[_Step]:
        """The logarithms, and for `mfcc` their cosine transform."""
        mels, bits = self.mels, max((2 * self.points).bit_length() - 1 - WEIGHT_BITS // 2, 0)
        words = {"file": "log", "p0_size": mels, "input_correction_bits": bits, "output_scale": UNIT}
        ends = [_step("logarithms", "roots", (1, mels), KIND, LOGARITHMS, **words)]
        if self.declared.features == "mfcc":
            factors = cosines(self.count, mels)
            steps = Steps(1, (None, (mels, mels, 0)), cycles=8 + 8 * mels)
            ends.append(_step("cosines", "logarithms", (1, self.count), KIND, factors, p0_size=mels, steps=steps))
        return ends

    def at_once(self) -> tuple[str, list[np.ndarray], int, int]:
        """The C of all steps, window by window, with its tables, bytes of working memory, and cycles of a window. Large
        results lie in two buffers in turn, as only the next step reads a result."""
        steps, rooms = self.steps(f"number_of_window * {self.declared.hop}"), ""
        names = {name: f"p{place}" for place, name in enumerate(self.given)} | {each.name: each.name for each in steps}
        names[steps[-1].name] = "features"
        held, room = (-(-max(sizes) // 8) * 8 for sizes in zip(*((s.work_bytes, s.bytes) for s in steps), strict=True))
        places, tables, bodies = cycle((held, held + room)), list[np.ndarray](), ""
        for each in steps:
            bodies += each.within(names, len(self.given) + len(tables))
            tables += each.tables
            if each is steps[-1]:
                continue
            if each.bytes <= _SMALL:  # a separate array preserves the result before
                rooms += f"{each.dtype}_t {each.name}[{prod(each.shape)}];\n"
            else:
                rooms += f"{each.dtype}_t *const {each.name} = ({each.dtype}_t *)((void *)&work[{next(places)}]);\n"
        words = {"RESULTS": rooms, "STEPS": bodies, "windows": self.windows, "count": self.count}
        cycles = LOOP_CYCLES + sum(each.cycles for each in steps)
        return body_of(text_of("signal/features.c"), words), tables, held + 2 * room, cycles


def with_sound(draft: Draft, declared: SensorInput, name: str, shape: tuple[int, ...], unit: float) -> str:
    """The features of new windows, in 16 bits, from the microphone's samples, the tensor `name`."""
    rows, count = rows_of(declared, shape)
    windows = declared.new or rows
    _check(declared, rows, windows, count)
    kept = declared.window - declared.hop if declared.new else 0
    length = windows * declared.hop if declared.new else (rows - 1) * declared.hop + declared.window
    draft.tensors[name] = Tensor(name, (1, length), KIND, Quantization((unit,), (0,)))
    before = [draft.new_name(f"{name}_kept")] if kept else []
    for state in before:  # samples of earlier frames
        draft.tensors[state] = Tensor(state, (1, kept), KIND)
    features = _Features(declared, windows, count, kept)
    given = dict(zip(features.given, [*before, name], strict=True))
    if windows == 1 or (kept and windows <= _FEW):
        parts = tuple(_shared(draft, features, given, number * declared.hop) for number in range(windows))
        made = parts[0] if windows == 1 else draft.op(draft.before, Concat(0), parts, None, KIND)
    else:
        made = _at_once(draft, features, given)
    if before:
        after = draft.new_name(f"{before[0]}_next")
        draft.tensors[after] = Tensor(after, (1, kept), KIND)
        _shifted(draft, before[0], name, after, np.zeros((1, kept), KIND))
    return made


def _shared(draft: Draft, features: _Features, given: dict[str, str], start: int) -> str:
    """The features of the window at sample `start`, by an op for each step. PEs share the rows."""
    names, steps = dict(given), features.steps(start)
    for step in steps:
        names[step.name] = draft.new_name(step.name)
        tables = _constants(draft, f"{given['samples']}_{step.name}", step.tables)
        operands = (*(names[each] for each in step.reads), *tables)
        rows = _rows(draft, step.steps, step.shape, operands)
        attributes = TvmCode(step.name, step.code, step.work_bytes, WHY, cycles=step.cycles, given=True, rows=rows)
        draft.tensors[names[step.name]] = Tensor(names[step.name], step.shape, step.dtype)
        draft.op(draft.before, attributes, operands, None, output=names[step.name])
    return names[steps[-1].name]


def _at_once(draft: Draft, features: _Features, given: dict[str, str]) -> str:
    """The features of several windows by one op. PEs share the windows of a clip."""
    (code, tables, work_bytes, of_window), declared = features.at_once(), features.declared
    made = draft.new_name(str(declared.features))
    draft.tensors[made] = Tensor(made, (features.windows, features.count), KIND)
    operands = (*given.values(), *_constants(draft, made, tables))
    windows, shape = Steps(features.count, ((declared.hop, declared.window, 0),)), (features.windows, features.count)
    rows = () if features.kept else _rows(draft, windows, shape, operands)
    cycles = stated_cycles(windows._replace(cycles=of_window), shape)
    attributes = TvmCode(str(declared.features), code, work_bytes, WHY, cycles=cycles, given=True, rows=rows)
    return draft.op(draft.before, attributes, operands, None, output=made)


def _rows(draft: Draft, steps: Steps, shape: tuple[int, ...], operands: Sequence[str]) -> tuple[RowReads, ...]:
    """The reads of an op with the output `shape`."""
    return stated_rows(steps, shape, [draft.tensors[each].shape for each in operands])


def _constants(draft: Draft, name: str, tables: Sequence[np.ndarray]) -> Iterator[str]:
    """The tables as constants, under names common to all windows."""
    return map(draft.constant, (f"{name}_table_{place}" for place in range(len(tables))), tables)


def rows_of(declared: SensorInput, shape: tuple[int, ...]) -> tuple[int, int]:
    """The number of windows in a model's input, and of features in each."""
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
    """Add the op for `output`, all windows of the model's input: new windows follow those of earlier frames."""
    wanted = draft.tensors[output]
    kept = draft.new_name(f"{output}_kept")
    draft.tensors[kept] = Tensor(kept, wanted.shape, wanted.dtype, wanted.quantization)
    rows = wanted.elements // silent.size
    _shifted(draft, kept, made, output, np.tile(silent.ravel(), rows).reshape(wanted.shape))


def _shifted(draft: Draft, kept: str, fresh: str, output: str, initial: np.ndarray) -> None:
    """Add the op that appends `fresh` to `kept`. `output`: the last numbers, which are the next frame's `kept`."""
    rows = next((size for size in draft.tensors[kept].shape if size > 1), 1)
    width = draft.tensors[kept].elements // rows
    words = {"rows": rows, "width": width, "fresh": draft.tensors[fresh].elements // width}
    starts = (words["fresh"], words["fresh"] - rows)
    windows = tuple((width, width, start * width) for start in starts)
    steps = Steps(width, windows, alike=False, cycles=10 * width + (8 if width > 1 else 2))
    reads = _rows(draft, steps, draft.tensors[kept].shape, (kept, fresh))
    code, cycles = body_of(text_of("signal/shifted.c"), words), stated_cycles(steps, (rows * width,))
    attributes = TvmCode("shifted", code, why=WHY, cycles=cycles, given=True, rows=reads)
    draft.op(draft.before, attributes, (kept, fresh), None, output=output)
    draft.state(kept, output, initial)


def hann(size: int) -> np.ndarray:
    """The factors of the Hann window in 1/4096."""
    angles = 2 * np.pi * (np.arange(size) + 0.5) / size
    return np.floor((0.5 - 0.5 * np.cos(angles)) * (1 << WINDOW_BITS) + 0.5).astype(np.int16)


def mel(frequency: np.ndarray | float) -> np.ndarray:
    return 1127 * np.log1p(np.asarray(frequency) / 700)


def filter_bank(declared: SensorInput, points: int, mels: int) -> tuple[np.ndarray, ...]:
    """Weights and their complements, in 1/4096. Then for each channel the first frequency, the index of the first
    weight, and the number of weights. Channels are triangles at equal distances on the mel scale. Each frequency is
    divided between its two neighbouring channels."""
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
    return weights, rests, *(each.astype(np.int16) for each in (begins, begins - first, channels - begins))


def cosines(count: int, mels: int) -> np.ndarray:
    """The factors of the cosine transform, orthonormal, in 1/16384."""
    rows = np.cos(np.pi * np.outer(np.arange(count), np.arange(mels) + 0.5) / mels) * np.sqrt(2 / mels)
    rows[0] /= np.sqrt(2)
    return np.rint(rows * (1 << COSINE_BITS)).astype(np.int16)
