"""Division of a depthwise convolution on planes into pieces that fit the registers.

A piece is a tile of output rows times a group of output columns: at most four outputs, which share the loaded data.
Inputs and weights are halves of registers. Halfword planes give neighbours (x, x+1); byte planes, split by UXTB16, give
(x, x+2). A dual multiply-accumulate computes two taps if a register holds both inputs and another both weights; single
multiply-accumulates compute the rest. Taps outside the image are omitted: inputs are relative to their zero point, so a
missing tap adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.stream import packed
from npukit.net.ops import Pair

RESIDENT_KERNEL = (3, 3)
"""The kernel whose weights stay in registers for a whole plane."""
RESIDENT_ROWS = 2
"""Output rows computed together with `RESIDENT_KERNEL`; other kernels compute one row at a time."""
WIDEST_KERNEL = 7
Columns = tuple[int | None, ...]
Taps = tuple[int | None, int | None]
Half = tuple[str, str]
"""a register and its half: "b" bottom, "t" top"""


@dataclass(frozen=True)
class Line:
    """One dimension of a plane: inputs, outputs and the window's movement. `padding`: before the first input only."""

    inputs: int
    outputs: int
    kernel: int
    stride: int
    padding: int

    def start(self, output: int) -> int:
        """The input under the window's first tap; negative in the padding."""
        return output * self.stride - self.padding


@dataclass(frozen=True)
class RowTile:
    """Output rows from `row` on, computed together. `taps`: for each input row the kernel row on it, per output row."""

    row: int
    height: int
    first_input: int
    taps: tuple[tuple[int | None, ...], ...]

    @property
    def pattern(self) -> tuple:
        return self.height, self.taps


@dataclass(frozen=True)
class Group:
    """Output columns from `column` on. `base`: the first loaded input column."""

    column: int
    width: int
    base: int
    taps: tuple[tuple[tuple[int | None, ...], ...], ...]
    """The taps of the halves of each loaded register, by output."""

    @property
    def pattern(self) -> tuple:
        return self.width, self.taps


def tiles(down: Line, height: int) -> Iterator[RowTile]:
    """Tiles of `height` output rows. The last tile may have fewer."""
    for row in range(0, down.outputs, height):
        starts = [down.start(each) for each in range(row, min(row + height, down.outputs))]
        first, last = max(starts[0], 0), min(starts[-1] + down.kernel, down.inputs)
        taps = (tuple(tap_under(y, s, down.kernel, down.inputs) for s in starts) for y in range(first, last))
        yield RowTile(row, len(starts), first, tuple(taps))


def groups(across: Line, height: int, *, halfwords: bool) -> Iterator[Group]:
    """Groups of columns, as wide as the accumulators of a tile of `height` rows allow. Halfwords need windows that
    start at a word: columns before such a window form groups of their own."""
    column = 0
    while column < across.outputs:
        start = across.start(column)
        alone = halfwords and across.stride == 1 and (start < 0 or start % 2 == 1)
        columns = 1 if alone else min(4 // height, across.outputs - column)
        width, kernel = across.inputs, across.kernel
        starts = [across.start(column + c) for c in range(columns)]
        first, last = max(starts[0], 0), min(starts[-1] + kernel, width)
        base = first & ~1 if halfwords else max(min(first, width - 4), 0)
        loaded = [(x, x + 1) for x in range(base, last, 2)] if halfwords else _byte_pairs(base, last, width)
        taps = tuple(tuple(tuple(tap_under(x, s, kernel, width) for x in pair) for s in starts) for pair in loaded)
        yield Group(column, columns, base, taps)
        column += columns


def _byte_pairs(base: int, last: int, outside: int) -> list[Pair]:
    """Words as two pairs each; a single last byte as a pair with the other half outside the image."""
    pairs: list[Pair] = []
    for x in range(base, last, 4):
        pairs += [(x, outside)] if last - x == 1 else [(x, x + 2), (x + 1, x + 3)]
    return pairs


@dataclass(frozen=True)
class WeightPlace:
    """The places of a kernel's weights: for each row the halves of registers, as taps of the row."""

    rows: tuple[tuple[tuple[str, Columns], ...], ...]

    def of_row(self, row: int) -> TapWeights:
        pairs: dict[Pair, str] = {}
        singles: dict[int, tuple[str, str]] = {}
        for register, halves in self.rows[row]:
            low, high = halves
            if low is not None and high is not None:
                pairs[low, high] = register
            for tap, half in ((low, "b"), (high, "t")):
                if tap is not None:
                    singles.setdefault(tap, (register, half))
        return TapWeights(pairs, singles)


def streamed_weights(kernel: Pair, *, halfwords: bool) -> WeightPlace:
    """Each row in registers from r0 on, loaded before use: a register for every pair of taps in which inputs arrive."""
    apart = 1 if halfwords else 2
    taps = kernel[1]
    pairs: list[Columns] = [(tap, tap + apart) for tap in range(taps - apart)]
    lonely = [tap for tap in range(taps) if not any(tap in pair for pair in pairs)]
    pairs += [(tap, None) for tap in lonely]
    row = tuple((f"r{index}", pair) for index, pair in enumerate(pairs))
    return WeightPlace((row,) * kernel[0])


def resident_weights(*, halfwords: bool) -> WeightPlace:
    """A whole 3x3 kernel: six registers for halfwords; five for bytes, where middle taps share a register."""
    if halfwords:
        return WeightPlace(tuple(((f"r{2 * r}", (0, 1)), (f"r{2 * r + 1}", (1, 2))) for r in range(3)))
    middle: tuple[tuple[str, Columns], ...] = (("r3", (1, None)), ("r3", (None, 1)), ("r4", (1, None)))
    return WeightPlace(tuple(((f"r{r}", (0, 2)), middle[r]) for r in range(3)))


def weight_words(place: WeightPlace, weights: np.ndarray, *, resident: bool) -> Sequence[np.ndarray]:
    """The words of a kernel's registers for all channels, of weights [channel, row, column]."""
    if not resident:
        return [_word(weights[:, row], halves) for row, line in enumerate(place.rows) for _, halves in line]
    registers: dict[str, np.ndarray] = {}
    for row, line in enumerate(place.rows):
        for register, halves in line:
            registers[register] = registers.get(register, 0) | _word(weights[:, row], halves)
    return [registers[name] for name in sorted(registers)]


def _word(row: np.ndarray, halves: Columns) -> np.ndarray:
    """Two taps of a row as the halves of a word; 0 for a missing tap."""
    low, high = (np.zeros(len(row), np.int64) if tap is None else row[:, tap] for tap in halves)
    return packed(np.stack([low, high], 1))[:, 0]


@dataclass(frozen=True)
class TapWeights:
    """The places of a row's weights: pairs of taps in one register, and each single tap in a half."""

    pairs: Mapping[tuple[int, int], str]
    singles: Mapping[int, Half]


def products(taps: Taps, value: str, accumulator: str, weights: TapWeights) -> Iterator[str]:
    """Instructions, without addend, that add the two inputs in `value` under the given taps to an accumulator."""
    low, high = taps
    if low is not None and high is not None and (low, high) in weights.pairs:
        yield f"smlad {accumulator}, {value}, {weights.pairs[low, high]}"
        return
    for tap, half in ((low, "b"), (high, "t")):
        if tap is not None:
            register, weight_half = weights.singles[tap]
            yield f"smla{half}{weight_half} {accumulator}, {value}, {register}"


def tap_under(column: int, window_start: int, kernel_width: int, width: int) -> int | None:
    """The tap of a window over an input column, or None if there is no tap or the column is outside."""
    tap = column - window_start
    return tap if 0 <= tap < kernel_width and 0 <= column < width else None
