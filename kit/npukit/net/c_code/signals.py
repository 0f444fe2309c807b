"""The C in `templates/ops/signal` with tables: Fourier transforms and logarithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from textwrap import indent
from typing import Any

import numpy as np

from npukit.net.attributes import Pair
from npukit.net.c_code.function import body_of, text_of
from npukit.net.c_code.rows import EACH, LOOP_CYCLES, NO_STEPS, Steps

LOGARITHMS = np.rint(65536 * (np.log2(1 + np.arange(130) / 128) - np.arange(130) / 128)).astype(np.int32)
"""The height of the logarithm to base 2 above a straight line between two powers, in 128 segments."""
INDENT = "    "
WIDTHS: Mapping[str, Mapping[str, Any]] = {
    "int16": {"number": "int16_t", "wide": "int32_t", "bits": 15, "half": 1 << 14, "largest": (1 << 15) - 1},
    "int32": {"number": "int32_t", "wide": "int64_t", "bits": 31, "half": 1 << 30, "largest": (1 << 31) - 1},
}
"""The words of numbers of a Fourier transform."""

STEPS_OF: Mapping[str, Steps] = {
    "energy": Steps(1, ((2, 2, 0),), alike=False, cycles=15),
    "log": Steps(1, (EACH,), cycles=157),
    "noise": Steps(1, (EACH, EACH), alike=False, cycles=23),
    "pcan": Steps(1, (EACH, EACH), alike=False, cycles=160),
    "scaled": Steps(1, (EACH,), cycles=7),
    "square_root": Steps(1, (EACH,), cycles=411),
    "without_noise": Steps(1, (EACH, EACH), cycles=21),
}
"""The loop over rows of each template whose windows are the same for all sizes."""
WINDOW_CYCLES = 16
"""Cycles of a sample times a factor of a window."""


def filter_bank_steps(widths: np.ndarray) -> Steps:
    """The loop over channels. `widths`: the number of weights of each channel."""
    windows = (None, None, None, (1, 2, 0), (1, 2, 0), (1, 2, 0))
    return Steps(1, windows, alike=False, cycles=20 + 20 * float(widths.mean()))


def largest_steps(size: int) -> Steps:
    """The loop over parts of `size` samples."""
    return Steps(1, ((size, size, 0),), cycles=4 + _in_loop(size, 9))


def scale_bits_steps(parts: int) -> Steps:
    return NO_STEPS._replace(cycles=137 + 12 * parts)


_BUTTERFLY: Mapping[str, Mapping[str, int]] = {
    "int16": {"two": 27, "first": 63, "four": 78, "spectrum": 66},
    "int32": {"two": 31, "first": 83, "four": 158, "spectrum": 85},
}
"""Cycles of a turn of each template of Fourier transforms; of `spectrum`, with the turn of its loop."""
_FACTORS, _CONDITION, _FRAME = 12, 3, 11
"""Cycles of the loads of factors, of a sample that may be zero, and of the number of a row's frame."""

_PARTS = 32
"""Maximum number of parts in a search for the largest sample. Of 16, 32 and 64, 32 parts make the shortest frame of
`audio_preprocessor_int8.tflite` on 16 PEs, and cost a single PE 0.3 % more than 16 parts (`npukit fit`)."""


def parts_of(samples: int) -> int:
    """The number of equal parts of samples."""
    return max(parts for parts in range(1, _PARTS + 1) if samples % parts == 0)


@dataclass(frozen=True)
class Part:
    """C from p0 and tables to numbers of Fourier transforms. Each step of the loop makes a row of `shape`."""

    code: str
    tables: tuple[np.ndarray, ...]
    shape: Pair
    cycles: int
    work_bytes: int = 0

    @property
    def steps(self) -> Steps:
        """The loop over rows. A row may depend on all numbers."""
        return Steps(self.shape[1], alike=False, cycles=self.cycles)


def fourier_parts(points: int, kind: str, length: int, frames: int = 1) -> dict[str, Part]:
    """The parts, by name, of transforms of `frames` of `length` real numbers, with zeros up to 2 `points`.

    A transform has half as many complex numbers, and steps of radix 4, behind a step of radix 2 if necessary. The first
    steps read blocks of adjacent numbers. The other steps, joins, read the numbers at the same place of all blocks.
    Each part is computed row by row, and PEs share the rows.
    """
    steps = len(_radices(points))
    middle = (steps + 1) // 2
    parts = {"blocks": _Steps(points, kind, frames, length, 0, middle)}
    if middle < steps:
        parts["joins"] = _Steps(points, kind, frames, length, middle, steps)
    *_, last = parts.values()
    made = {name: each.part() for name, each in parts.items()}
    return {**made, "spectrum": _spectrum(points, kind, frames, last.rows)}


def _spectrum(points: int, kind: str, frames: int, columns: int) -> Part:
    """The last part: from the transform of complex numbers to the transform of real numbers."""
    rows, angles = frames * (points + 1), -np.pi * ((np.arange(points // 2) + 1) / points + 0.5)
    words = _words(kind) | {"points": points, "rows": rows, "columns": columns, "size": points // columns}
    words |= {"column_bits": columns.bit_length() - 1, **_places(points + 1, frames)}
    cycles = _BUTTERFLY[kind]["spectrum"] + (_FRAME if frames > 1 else 0)
    return Part(body_of(text_of("signal/spectrum.c"), words), (_turns(angles, kind),), (rows, 2), cycles)


def _places(rows: int, frames: int) -> dict[str, str]:
    """The C of a row's frame, and of the row's number in the frame."""
    several = {"FRAME": f"row / {rows}", "PLACE": f"row % {rows}"}
    return several if frames > 1 else {"FRAME": "0", "PLACE": "row"}


def _radices(points: int) -> list[int]:
    """The radix of each step: two if four does not divide the numbers, then four."""
    return [2] * ((points.bit_length() - 1) % 2) + [4] * ((points.bit_length() - 1) // 2)


def _words(kind: str) -> dict[str, Any]:
    largest = WIDTHS[kind]["largest"]
    return {**WIDTHS[kind], "by_two": largest // 2, "by_four": largest // 4}


def _turns(angles: np.ndarray, kind: str) -> np.ndarray:
    """Cosine and sine of each angle as integers."""
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.floor(0.5 + WIDTHS[kind]["largest"] * pairs).astype(kind)


def _in_loop(turns: int, cycles: int) -> int:
    """Cycles of a loop, which compilers unroll up to two turns."""
    return turns * cycles if turns <= 2 else LOOP_CYCLES + turns * (LOOP_CYCLES + cycles)


@dataclass(frozen=True)
class _Steps:
    """Steps of transforms, from number `begin` to before `end`."""

    points: int
    kind: str
    frames: int
    length: int
    begin: int
    end: int

    @property
    def radices(self) -> list[int]:
        return _radices(self.points)[self.begin : self.end]

    @property
    def size(self) -> int:
        """The numbers of a row."""
        return prod(self.radices)

    @property
    def rows(self) -> int:
        """The rows of a frame: behind other steps as many as each of these has made numbers of."""
        return self.points // self.size

    def spans(self) -> list[int]:
        """The distances of a turn's numbers from each other in a row, in each step."""
        return [prod(self.radices[:step]) for step in range(len(self.radices))]

    def part(self) -> Part:
        rows, several = self.frames * self.rows, len(self.radices) > 1
        number = WIDTHS[self.kind]["number"]
        held = f"{number} *const held = ({number} *)((void *)work);" if several else ""
        words = {
            "HELD": held,
            "rows": rows,
            "STEPS": indent("".join(map(self._step, range(len(self.radices)))), INDENT),
        }
        work_bytes = 2 * self.size * np.dtype(self.kind).itemsize if several else 0
        shape, cycles = (rows, 2 * self.size), self._cycles()
        return Part(body_of(text_of("signal/fourier.c"), words), self._tables(), shape, cycles, work_bytes)

    def _cycles(self) -> int:
        """Predicted cycles of a row."""
        found = LOOP_CYCLES
        for step, (radix, span) in enumerate(zip(self.radices, self.spans(), strict=True)):
            turns, butterflies = self.size // (radix * span), _BUTTERFLY[self.kind]
            if step == self.begin == 0:
                samples = [2 * each * self.points // radix + at for each, at in product(range(radix), range(2))]
                conditions = sum(self._read("samples", place) != f"p0[from + {place}]" for place in samples)
                found += _in_loop(turns, butterflies["two" if radix == 2 else "first"] + _CONDITION * conditions)
            else:
                found += _in_loop(span, _FACTORS + _in_loop(turns, butterflies["four"]))
        return found + (_FRAME * (len(self.radices) if self.begin else 1) if self.frames > 1 else 0)

    def _tables(self) -> tuple[np.ndarray, ...]:
        """The first sample of each turn of the first steps; then the factors of each row, three at each place."""
        before, factors = self.rows if self.begin else 1, list[np.ndarray]()
        for span in self._turned_spans():
            at = np.arange(before)[:, None, None] + before * np.arange(span)[:, None]
            angles = -2 * np.pi * (at * np.arange(1, 4) * (self.points // (4 * span * before))) / self.points
            factors.append(_turns(angles, self.kind).reshape(before, -1))
        return (*(() if self.begin else (self._order(),)), *([np.concatenate(factors, axis=1)] if factors else []))

    def _order(self) -> np.ndarray:
        """The first number of each turn of the first step: every fourth or second number, recursively."""
        first, *steps = _radices(self.points)
        places = np.arange(self.points // first).reshape(steps).T.reshape(self.rows, -1)
        return places.astype(np.int16 if self.points < 1 << 15 else np.int32)

    def _turned_spans(self) -> list[int]:
        """The spans of the steps with factors: all but the first step of the transform."""
        return self.spans()[0 if self.begin else 1 :]

    def _step(self, step: int) -> str:
        """The C of a step, from given or held numbers to held numbers or the result."""
        radix, span, first = self.radices[step], self.spans()[step], step == self.begin == 0
        file, depth = ("two", 1) if radix == 2 else ("first", 1) if first else ("four", 2)
        here = f"turn * {radix * span} + at" if span > 1 else f"turn * {radix}"
        begin, source, far = (f"2 * ({here})", "held", span) if step else self._given()
        end, target = (here, "held") if step + 1 < len(self.radices) else (f"row * {self.size} + {here}", "output")
        words = _words(self.kind) | {"span": span, "turns": self.size // (radix * span), "FROM": begin}
        words |= {"TO": f"2 * ({end})", **({} if first else self._factors(span))}
        for each, (at, part) in product(range(radix), enumerate(("real", "imaginary"))):
            words[f"from_{each}_{part}"] = self._read(source, 2 * each * far + at)
            words[f"to_{each}_{part}"] = f"{target}[to + {2 * each * span + at}]"
        words["SUMS"] = indent(body_of(text_of("signal/fourier_sums.c"), words), depth * INDENT).rstrip()
        return body_of(text_of(f"signal/fourier_{file}.c"), words)

    def _given(self) -> tuple[str, str, int]:
        """The C of the begin of a turn of the first step, the array read, and the distance of the numbers read."""
        (frame, row), radix = _places(self.rows, self.frames).values(), self.radices[0]
        if self.begin:
            return f"2 * ({frame} * {self.points} + turn * {radix * self.rows} + {row})", "p0", self.rows
        begin = f"{frame} * {self.length} + 2 * p1[({row}) * {self.size // radix} + turn]"
        return begin, "samples", self.points // radix

    def _read(self, source: str, place: int) -> str:
        """A number of the source. Samples beyond the end of a frame are zero."""
        if source != "samples":
            return f"{source}[from + {place}]"
        if place + 2 * (self.points // self.radices[0] - 1) < self.length:
            return f"p0[from + {place}]"
        end = f"({_places(self.rows, self.frames)['FRAME']} + 1) * {self.length}"
        return f"(from + {place} < {end} ? p0[from + {place}] : 0)"

    def _factors(self, span: int) -> dict[str, str]:
        """The table of factors, and the index of the first factor of a place in a span."""
        spans = self._turned_spans()
        begin, row = 6 * sum(each for each in spans if each < span), _places(self.rows, self.frames)["PLACE"]
        if self.begin:
            return {"factors": "p1", "FACTOR": f"({row}) * {6 * sum(spans)} + {begin} + 6 * at"}
        return {"factors": "p2", "FACTOR": f"{begin} + 6 * at"}
