"""The core's part of a tile: sums stay, or are requantised; sums that were kept join them, or results are added.

A convolution and the addition of its result to a tensor are one op to the driver, and so are the last of sums that were
made one part of the depth after the other and what requantises them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from npukit.accel.filters import rows_and_biases
from npukit.net.net import Net, Op
from npukit.net.ops import Add, Conv2d, Dense, Sums, Total
from npukit.net.requantize import ADD_LEFT_SHIFT, Multiplier, add_rescaling, quantization, requantization, rescale

from .cycles import ADDED, GENERAL, KEEPS, KEPT, OF_THREE, OF_TWO, PLAIN, PLANE, RAW

HALF = Multiplier(1 << 30, 0)
MOST_RIGHT = 20
"""Bits of a shift with which the zero point, shifted, keeps clear of the highest bit."""
LARGEST_PRODUCT = 1 << 14
SHARES = 6
"""The first word of an addition's table (`mla.h`)."""


class Results(Enum):
    """The forms of a result: int8 in the driver's short way, int8 in any other, or a sum."""

    PLAIN = "plain"
    GENERAL = "general"
    RAW = "raw"


@dataclass(frozen=True)
class Outcome:
    """The results that a tile's sums become, and what is added to the sums or to the results."""

    results: Results
    keeps: bool = False
    """True if sums that were kept join them."""
    adds: bool = False

    @property
    def words(self) -> int:
        """Words of the constants of an addition."""
        return (SHARES + 256) * self.adds

    @property
    def aliases(self) -> tuple[int, ...]:
        """The inputs on which the output may lie: sums on sums, results on what is added to them."""
        return (1,) if self.adds or (self.keeps and self.results is Results.RAW) else ()

    def cycles(self, passes: int, channels: int, values: int, planes: int = 1) -> int:
        """The core's cycles for so many values in passes of so many channels."""
        short = {1: PLAIN, 2: OF_TWO, 3: OF_THREE} if self.results is Results.PLAIN else {}
        of_channel, of_value = RAW if self.results is Results.RAW else GENERAL
        of_channel, of_value = short.get(planes, (of_channel, of_value + PLANE * (planes - 1)))
        raw = self.results is Results.RAW
        for of_pixel, more in [KEEPS] * raw + [KEPT] * self.keeps + [ADDED] * self.adds:
            of_value += more + planes * of_pixel / channels
        return round(passes * channels * of_channel + values * of_value)


@dataclass(frozen=True)
class Parts:
    """An op as the driver takes it: what makes sums, and what requantises sums or adds to results, if that is another
    op."""

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
        """True if kept sums join those that it makes."""
        return self.total is not None or (isinstance(self.main.attributes, Sums) and len(self.main.inputs) > 2)

    def refusal(self, net: Net) -> str | None:
        """Why the driver does not take what is behind the sums, or None."""
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
        """The outcome of sums of so much at most by channel, and whether 32 bits suffice for it."""
        most = most + (self._kept(net) or 0)
        if isinstance(self.last.attributes, Sums):
            return Outcome(Results.RAW, self.keeps), bool(np.all(most < 1 << 31))
        attributes = (self.total or self.main).attributes
        assert isinstance(attributes, Conv2d | Dense | Total)
        _, shifts = self.factors(net)
        plain = attributes.clamp == (-128, 127) and bool(np.all(shifts < 0))
        left = np.maximum(shifts, 0).astype(np.int64)
        fit = np.all((most + np.abs(self.biases(net))) << left < 1 << 30) and np.all(shifts >= -MOST_RIGHT)
        results = Results.PLAIN if plain else Results.GENERAL
        return Outcome(results, self.keeps, self.addition is not None), bool(fit)

    def factors(self, net: Net) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers and shifts of the channels; 0 where sums stay what they are."""
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
        """The most that kept sums may be, if other sums make them; 0 if there are none."""
        makers = {part.output: part for op in net.ops for part in op.parts if isinstance(part.attributes, Sums)}
        most, made = 0, self.main
        while isinstance(made.attributes, Sums) and len(made.inputs) > 2:
            if made.inputs[2] not in makers:
                return None
            made = makers[made.inputs[2]]
            depth = net.constants[made.inputs[1]][0].size
            most += LARGEST_PRODUCT * depth * 2
        return most


def addition_words(net: Net, addition: Op, result: str) -> np.ndarray:
    """The words of `enum mla_addition` for the operand `result` and the other: the one that is looked up is that with
    the smaller scale, as the other's factor is one half, which is a shift."""
    scaling = add_rescaling(net, addition)
    factors = scaling.first, scaling.second
    looked_up = 1 if factors[0] == HALF else 0
    zeros = [quantization(net, name).zero_point for name in addition.inputs]
    values = np.arange(-128, 128, dtype=np.int64) - zeros[looked_up]
    shares = 2 * rescale(values << ADD_LEFT_SHIFT, factors[looked_up]) - (zeros[1 - looked_up] << ADD_LEFT_SHIFT)
    assert isinstance(addition.attributes, Add)
    low, high = addition.attributes.clamp
    zero, output = quantization(net, addition.output).zero_point, scaling.output
    head = output.multiplier, -output.shift, zero, low, high, int(addition.inputs[looked_up] == result)
    return np.concatenate([head, shares]).astype(np.int32)
