"""gemmlowp's fixed-point functions, used by TFLite's integer softmax, logistic and tanh.

Values are int32 in int64 arrays. Qm.n has m integer and n = 31 - m fraction bits.
"""

from __future__ import annotations

import numpy as np

from npukit.net.requantize import doubling_high_multiply, rounding_shift_right

Q31_ONE = (1 << 31) - 1
"""The largest Q0.31 number, used as 1."""
HALF_ROOT_OF_TWO = 1518500250
"""Half the square root of two in Q0.31."""


def saturating_shift(value: np.ndarray, exponent: int) -> np.ndarray:
    """value * 2**exponent: saturated for positive, rounded for negative exponents."""
    if exponent < 0:
        return rounding_shift_right(value, -exponent)
    return np.clip(value << exponent, -(1 << 31), Q31_ONE)


def exp_of_negative(value: np.ndarray, integer_bits: int) -> np.ndarray:
    """exp(value) in Q0.31 for value <= 0 in Q[integer_bits]."""
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (value & (quarter - 1)) - quarter
    result = _exp_of_last_quarter(saturating_shift(remainder, integer_bits))
    rest = remainder - value
    for exponent, factor in _EXP_FACTORS.items():
        if integer_bits > exponent:
            bit = 1 << (fraction_bits + exponent)
            result = np.where(rest & bit, doubling_high_multiply(result, factor), result)
    if integer_bits > 5:
        result = np.where(value < -(1 << (fraction_bits + 5)), 0, result)
    return np.where(value == 0, Q31_ONE, result)


_EXP_FACTORS = {-2: 1672461947, -1: 1302514674, 0: 790015084, 1: 290630308, 2: 39332535, 3: 720401, 4: 242}
"""exp(-2**exponent) in Q0.31."""


def _exp_of_last_quarter(value: np.ndarray) -> np.ndarray:
    """exp(value) for -1/4 <= value < 0 in Q0.31: a Taylor series about -1/8."""
    exp_minus_eighth, third = 1895147668, 715827883
    x = value + (1 << 28)
    x2 = doubling_high_multiply(x, x)
    x3 = doubling_high_multiply(x2, x)
    x4_quarter = saturating_shift(doubling_high_multiply(x2, x2), -2)
    tail = saturating_shift(doubling_high_multiply(x4_quarter + x3, third) + x2, -1)
    return np.minimum(exp_minus_eighth + doubling_high_multiply(x + tail, exp_minus_eighth), Q31_ONE)


def reciprocal_of_one_plus(value: np.ndarray) -> np.ndarray:
    """1 / (1 + value) in Q0.31 for 0 <= value < 1 in Q0.31."""
    return saturating_shift(_newton_reciprocal(value), 1)


def _newton_reciprocal(value: np.ndarray) -> np.ndarray:
    """2 / (1 + value) in Q2.29: three steps from a linear guess."""
    forty_eight_seventeenths, minus_thirty_two_seventeenths = 1515870810, -1010580540
    total = value + Q31_ONE
    denominator = np.sign(total) * ((np.abs(total) + 1) // 2)
    x = forty_eight_seventeenths + doubling_high_multiply(denominator, minus_thirty_two_seventeenths)
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(denominator, x)
        x = x + saturating_shift(doubling_high_multiply(x, error), 2)
    return x


def logistic(value: np.ndarray, integer_bits: int) -> np.ndarray:
    """1 / (1 + exp(-value)) in Q0.31 for value in Q[integer_bits]."""
    positive = reciprocal_of_one_plus(exp_of_negative(-np.abs(value), integer_bits))
    return np.where(value == 0, 1 << 30, np.where(value > 0, positive, Q31_ONE - positive))


def tanh(value: np.ndarray, integer_bits: int) -> np.ndarray:
    """tanh(value) in Q0.31 for value in Q[integer_bits]. Doubles the value by reading the same integer with one more
    integer bit."""
    power = exp_of_negative(-np.abs(value), integer_bits + 1)
    magnitude = saturating_shift(_newton_reciprocal(power) - (1 << 29), 2)
    return np.sign(value) * magnitude


def reciprocal_root(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 / sqrt(value) for whole numbers 1 <= value < 1 << 29, as a multiplier and a shift: five steps from 1."""
    zeros = 32 - np.frexp(value.astype(np.float64))[1].astype(np.int64)
    pairs = (zeros - 1) // 2 - 1
    fixed = (value << (2 * pairs)) >> 1
    half, x = rounding_shift_right(fixed, 1), np.full_like(value, 1 << 28)
    for _ in range(5):
        cube = saturating_shift(doubling_high_multiply(doubling_high_multiply(x, x), x), 6)
        x = saturating_shift(doubling_high_multiply(x, 3 << 27) - doubling_high_multiply(half, cube), 3)
    root, shift = doubling_high_multiply(x, HALF_ROOT_OF_TWO), 11 - pairs
    root, shift = root << np.maximum(-shift, 0), np.maximum(shift, 0)
    return np.where(value == 1, Q31_ONE, root), np.where(value == 1, 0, -shift)
