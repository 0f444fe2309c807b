"""TensorFlow Lite's double rounding as one multiply-accumulate and one saturating shift.

The definition rounds twice: y = floor((a * m + 2**30) / 2**31), halves up for both signs, then r = floor((y + 2**(e-1)
- [y < 0]) / 2**e), e being the channel's right shift. Floors of floors merge: with E > e and accumulators prescaled by
2**(1 + E - e), all added terms are integers of the product's high word, so

    output = saturate((high_word(accumulator * multiplier) + addend) >> E)

with the addend reduced by `ties` = 2**(E - e) for negative accumulators. If the zero point is the lowest value, the
correction is not needed, because all negative results are clamped to the zero point. The two instructions SMMLA and
SSAT compute the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npukit.net.ops import Pair
from npukit.net.requantize import Requantization
from npukit.net.value_ranges import HIGHEST, LOWEST

LARGEST_EXPONENT = 22
LARGEST_WEIGHT = 32767
_LEAST_PRESCALE = 2
_SHARED_STEP = 4


@dataclass(frozen=True)
class FastRequantization:
    """Per channel: E, log2 of the prescaling, multiplier, addend and tie step."""

    exponents: np.ndarray
    prescale: np.ndarray
    multipliers: np.ndarray
    addends: np.ndarray
    ties: np.ndarray

    @property
    def exponent(self) -> int | None:
        """E, if all channels have the same; else None."""
        return int(self.exponents[0]) if (self.exponents == self.exponents[0]).all() else None

    @property
    def needs_ties(self) -> bool:
        return bool(self.ties.any())


def exponents(requantization: Requantization) -> np.ndarray:
    """The right shift of each channel."""
    return -np.asarray(requantization.shifts, np.int64)


def smallest_exponent(requantization: Requantization) -> int:
    return max(int(exponents(requantization).max()) + 1, 1)


def clamp_refusal(clamp: Pair) -> str | None:
    """The reason why saturation to 8 bits differs from the clamp, or None."""
    return None if clamp == (LOWEST, HIGHEST) else f"the clamp {clamp} is not the range of int8"


def common_exponents(requantization: Requantization) -> list[int]:
    """Common E worth trying. The first is likely to be used by other layers too, which then share code."""
    smallest = smallest_exponent(requantization)
    return [-(-smallest // _SHARED_STEP) * _SHARED_STEP, smallest]


def smallest_exponents(requantization: Requantization) -> np.ndarray:
    """The smallest E of each channel."""
    return np.maximum(exponents(requantization) + 1, 1)


def fast_requantization(
    requantization: Requantization, zero: int, exponent: int | np.ndarray, *, unsigned: bool = False
) -> FastRequantization:
    """The constants for a common E or one E per channel. `unsigned`: True to omit the zero point from results."""
    e = exponents(requantization)
    exponent = np.broadcast_to(np.asarray(exponent, np.int64), e.shape)
    half = np.where(e >= 1, np.int64(1) << np.maximum(exponent - e - 1, 0), 0)
    addends = (np.int64(0 if unsigned else zero) << exponent) + (np.int64(1) << (exponent - 1)) + half
    ties = np.where(e >= 1, np.int64(1) << np.maximum(exponent - e, 0), 0)
    if zero == LOWEST:
        ties = np.zeros_like(ties)
    multipliers = np.asarray(requantization.multipliers, np.int64)
    return FastRequantization(exponent, 1 + exponent - e, multipliers, addends, ties)


def rounded_requantization(requantization: Requantization, zero: int) -> FastRequantization:
    """The constants for E = e with a single multiplier: SMMLAR does the first rounding, and the tie step is 1."""
    e = exponents(requantization)
    addends = (np.int64(zero) << e) + (np.int64(1) << (e - 1))
    ones = np.ones_like(e)
    return FastRequantization(e, ones, np.asarray(requantization.multipliers, np.int64), addends, ones)


def scaled_byte(twice: str, multiplier: str, addend: str, spare: str, shift: int) -> Iterator[str]:
    """Instructions that rescale twice a number to int8 by SMMLAR, gemmlowp's doubling high multiply.

    The addend includes the zero point and half a step of the right shift. Before a shift, negative numbers lose 1,
    because halves round away from zero.
    """
    if shift:
        yield f"add {spare}, {addend}, {twice}, asr #31"
    yield f"smmlar {twice}, {twice}, {multiplier}, {spare if shift else addend}"
    yield saturated(twice, shift)


def saturated(register: str, shift: int) -> str:
    """The instruction that shifts a number to the right and saturates it to int8."""
    return f"ssat {register}, #8, {register}{f', asr #{shift}' * bool(shift)}"


def overflow(fast: FastRequantization, largest: np.ndarray) -> str | None:
    """The reason why a prescaled accumulator exceeds 32 bits, or None. `largest`: largest magnitude per channel."""
    if fast.exponents.max() > LARGEST_EXPONENT:
        return f"a right shift of {int(fast.exponents.max())} exceeds {LARGEST_EXPONENT}"
    if fast.prescale.min() < _LEAST_PRESCALE:
        return "a channel's right shift is not below the common one"
    return _too_many_bits(fast, largest)


def rounded_overflow(fast: FastRequantization, largest: np.ndarray) -> str | None:
    """The reason why a prescaled accumulator exceeds 32 bits if E = e, or None."""
    if fast.exponents.min() < 1 or fast.exponents.max() > LARGEST_EXPONENT:
        return f"a right shift of {int(fast.exponents[0])} is none of 1 to {LARGEST_EXPONENT}"
    return _too_many_bits(fast, largest)


def _too_many_bits(fast: FastRequantization, largest: np.ndarray) -> str | None:
    bits = np.ceil(np.log2(np.maximum(largest, 1).astype(np.float64) + 1)) + fast.prescale
    if bits.max() > 31:
        return f"an accumulator of {int(bits.max())} bits after prescaling does not fit 32"
    return None


def prescale_refusal(fast: FastRequantization, prescaled: np.ndarray) -> str | None:
    """The reason why prescaled weights exceed 16 bits, or None."""
    if np.abs(prescaled).max(initial=0) <= LARGEST_WEIGHT:
        return None
    return f"right shifts that differ by {int(np.ptp(fast.prescale))} push prescaled weights out of 16 bits"
