"""The core's part of a tile: requantisation of sums, kept sums that join them, and addition to results.

The driver takes a convolution and the addition of its result to a tensor as one op. The driver also takes as one op the
last of several sums over parts of the depth with their requantisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from npukit.accel.filters import rows_and_biases
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Conv2d, Dense, Sums, Total
from npukit.net.requantize import ADD_LEFT_SHIFT, Multiplier, add_rescaling, quantization, requantization, rescale

PLAIN, OF_TWO, OF_THREE, GENERAL = (45, 14), (55, 16), (55, 18), (67, 31)
"""Cycles to requantise: per channel of a pass, and per value. `PLAIN`: plain layers (`mla.h`); `OF_TWO`, `OF_THREE`:
plain layers with sums in two and three planes; `GENERAL`: other layers."""
RAW = (0, 14)
"""Cycles to write sums without requantisation, with one plane: per channel of a pass, and per value."""
KEEPS, KEPT, ADDED = (29, 0), (29, 8), (61, 14)
"""Further cycles to write sums, to add kept sums, and to add to results: per pixel and product, and per value."""
PLANE = 6
"""Cycles to add a value of a further plane, if the core has no short way."""
HALF = Multiplier(1 << 30, 0)
MOST_RIGHT = 20
"""Largest right shift in bits that keeps the shifted zero point clear of the highest bit."""
LARGEST_PRODUCT = 1 << 14
SHARES = 6
"""Index of the table in the words of an addition (`mla.h`)."""


class Results(Enum):
    """The forms of a result: int8 by the driver's short way, int8 otherwise, or a sum."""

    PLAIN = "plain"
    GENERAL = "general"
    RAW = "raw"


@dataclass(frozen=True)
class Outcome:
    """The results of a tile, and the additions to its sums or results."""

    results: Results
    keeps: bool = False
    """True if kept sums join the tile's."""
    adds: bool = False
    """True if a tensor is added to the results."""

    @property
    def words(self) -> int:
        """Words of the constants of an addition."""
        return (SHARES + 256) * self.adds

    @property
    def aliases(self) -> tuple[int, ...]:
        """Inputs that the output may alias: sums alias kept sums, results alias their addends."""
        return (1,) if self.adds or (self.keeps and self.results is Results.RAW) else ()

    def cycles(self, passes: int, channels: int, values: int, planes: int = 1) -> int:
        """The core's cycles for `values` in `passes` of `channels` each."""
        raw = self.results is Results.RAW
        short = {1: PLAIN, 2: OF_TWO, 3: OF_THREE} if self.results is Results.PLAIN else {}
        of_channel, of_value = RAW if raw else GENERAL
        of_channel, of_value = short.get(planes, (of_channel, of_value + PLANE * (planes - 1)))
        for of_pixel, more in [KEEPS] * raw + [KEPT] * self.keeps + [ADDED] * self.adds:
            of_value += more + planes * of_pixel / channels
        return round(passes * channels * of_channel + values * of_value)


@dataclass(frozen=True)
class Parts:
    """The ops that the driver takes as one: `main` makes sums, `total` requantises sums, `addition` adds to results."""

    main: Op
    total: Op | None = None
    addition: Op | None = None

    @classmethod
    def of(cls, op: Op) -> Parts:
        main, *rest = op.parts
        last = {type(part.attributes): part for part in rest}
        return cls(main, last.get(Total), last.get(Add))

    @property
    def last(self) -> Op:
        return self.addition or self.total or self.main

    @property
    def keeps(self) -> bool:
        """True if kept sums join the main op's."""
        return self.total is not None or (isinstance(self.main.attributes, Sums) and len(self.main.inputs) > 2)

    def refusal(self, net: Net) -> str | None:
        """The reason why the driver does not take the ops behind the sums, or None."""
        if self.total and len(self.total.inputs) > 4:
            return "it adds sums of several places"
        if self.keeps and self._kept(net) is None:
            return "how large the sums are that were kept is not known"
        if not self.addition:
            return None
        scaling = add_rescaling(net, self.addition)
        if any(name in net.constants for name in self.addition.inputs):
            return "what is added to its results is constant"
        if len({net.tensor(name).shape for name in (*self.addition.inputs, self.addition.output)}) > 1:
            return "what is added to its results is of another shape"
        right = HALF in (scaling.first, scaling.second) and 0 <= -scaling.output.shift <= MOST_RIGHT
        return None if right else "the scales of what is added are too far apart"

    def outcome(self, net: Net, most: np.ndarray) -> tuple[Outcome, bool]:
        """The outcome, and True if 32 bits suffice. `most`: upper bound of the sums' magnitude by channel."""
        most = most + (self._kept(net) or 0)
        if isinstance(self.last.attributes, Sums):
            return Outcome(Results.RAW, self.keeps), bool(np.all(most < 1 << 31))
        _, shifts = self.factors(net)
        clamp = (self.total or self.main).of(Conv2d, Dense, Total).clamp
        plain = clamp == (-128, 127) and bool(np.all(shifts < 0))
        left = np.maximum(shifts, 0).astype(np.int64)
        fit = np.all((most + np.abs(self.biases(net))) << left < 1 << 30) and np.all(shifts >= -MOST_RIGHT)
        results = Results.PLAIN if plain else Results.GENERAL
        return Outcome(results, self.keeps, self.addition is not None), bool(fit)

    def factors(self, net: Net) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers and shifts of the channels; zeros for sums without requantisation."""
        if self.total:
            return net.constants[self.total.inputs[-2]], net.constants[self.total.inputs[-1]]
        if isinstance(self.main.attributes, Sums):
            none = np.zeros(net.tensor(self.main.output).shape[-1], np.int32)
            return none, none
        found = requantization(net, self.main)
        return found.multipliers, found.shifts

    def biases(self, net: Net) -> np.ndarray:
        """The biases of the channels, with the input's zero point folded in."""
        _, own = rows_and_biases(net, self.main)
        return own + net.constants[self.total.inputs[-3]] if self.total else own

    def channel_words(self, net: Net) -> np.ndarray:
        """The words of `enum mla_channel` for each channel."""
        return np.stack([self.biases(net), *self.factors(net)], axis=1).astype(np.int32)

    def _kept(self, net: Net) -> int | None:
        """Upper bound of the kept sums' magnitude; 0 without kept sums, None if their maker is unknown."""
        makers = {part.output: part for op in net.ops for part in op.parts if isinstance(part.attributes, Sums)}
        most, made = 0, self.main
        while isinstance(made.attributes, Sums) and len(made.inputs) > 2:
            if made.inputs[2] not in makers:
                return None
            made = makers[made.inputs[2]]
            most += LARGEST_PRODUCT * net.constants[made.inputs[1]][0].size * 2
        return most


def addition_words(net: Net, addition: Op, result: str) -> np.ndarray:
    """The words of `enum mla_addition` for an addition to the operand `result`. The operand with the smaller scale is
    looked up. The other's factor is one half, a shift."""
    scaling = add_rescaling(net, addition)
    factors = scaling.first, scaling.second
    looked_up = 1 if factors[0] == HALF else 0
    zeros = [quantization(net, name).zero_point for name in addition.inputs]
    values = np.arange(-128, 128, dtype=np.int64) - zeros[looked_up]
    shares = 2 * rescale(values << ADD_LEFT_SHIFT, factors[looked_up]) - (zeros[1 - looked_up] << ADD_LEFT_SHIFT)
    zero, output = quantization(net, addition.output).zero_point, scaling.output
    is_result = int(addition.inputs[looked_up] == result)
    head = output.multiplier, -output.shift, zero, *addition.of(Add).clamp, is_result
    return np.concatenate([head, shares]).astype(np.int32)
