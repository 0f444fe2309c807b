"""Functions of two numbers, by a table of integers for each: quotients and squared differences.

The table of an operand maps each byte, in the order of bytes without sign, to an int32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import ceil, log2

import numpy as np

from npukit.errors import NpukitError
from npukit.net.box import Box
from npukit.net.net import Net, Op
from npukit.net.ops.elementwise import Divide, SquaredDifference, aligned, of_two
from npukit.net.ops.fields import Constant, broadcast_part, constant_operands
from npukit.net.ops.kind import names
from npukit.net.requantize import (
    WAYS,
    Multiplier,
    doubling_high_multiply,
    finished,
    multiplier_for,
    quantization,
    rescale,
    rounding_shift_right,
)
from npukit.net.tables import EVERY
from npukit.net.tensor import Quantization

_LEFT_SHIFT = 7
"""Bits below a step of squared differences, as in TFLite: the square of 16 bits fits 32 bits."""
_LEAST_SHIFT, _MOST_SHIFT = 9, 23
"""Bits below a step of a dividend: a dividend times the largest reciprocal is beyond int8, and fits 32 bits."""
_LARGEST, _LEAST = (1 << 31) - 1, 2.0**-60
"""Limits of reciprocals, and of the factor: beyond, all quotients are 0, or an end of the range."""

Tables = tuple[np.ndarray, np.ndarray]


def tables_of(net: Net, op: Op) -> Tables:
    """The integers of each operand's bytes."""
    given = [quantization(net, name) for name in (*op.inputs, op.output)]
    return (_of_quotient if isinstance(op.attributes, Divide) else _of_difference)(*given)


@lru_cache(maxsize=256)
def _of_quotient(first: Quantization, second: Quantization, made: Quantization) -> Tables:
    """The dividends and the reciprocals in fractions of a step."""
    factor = min(max(first.scale / second.scale / made.scale, _LEAST), 1 / _LEAST)
    shift = min(max(ceil(log2(factor)) + 1, _LEAST_SHIFT), _MOST_SHIFT)
    with np.errstate(divide="ignore"):
        reciprocals = np.rint(factor * 2.0 ** (32 - shift) / (EVERY - second.zero_point))
    limited = np.clip(reciprocals, -_LARGEST, _LARGEST)
    return _by_bytes((EVERY - first.zero_point) << shift), _by_bytes(limited)


@lru_cache(maxsize=256)
def _of_difference(first: Quantization, second: Quantization, made: Quantization) -> Tables:
    del made
    twice_largest = 2 * max(first.scale, second.scale)
    return _in_common(first, twice_largest), _in_common(second, twice_largest)


def _in_common(given: Quantization, twice_largest: float) -> np.ndarray:
    factor = multiplier_for(given.scale / twice_largest)
    scaled = doubling_high_multiply((EVERY - given.zero_point) << _LEFT_SHIFT, factor.multiplier)
    return _by_bytes(rounding_shift_right(scaled, -factor.shift))


def _by_bytes(values: np.ndarray) -> np.ndarray:
    return np.roll(values, len(values) // 2).astype(np.int32)


def square_rescaling(net: Net, op: Op) -> Multiplier:
    """The factor of the square of a difference."""
    return square_factor(*(quantization(net, name).scale for name in (*op.inputs, op.output)))


def square_factor(first: float, second: float, made: float) -> Multiplier:
    """The factor for the scales of operands and output. Raises an error if a square can leave 32 bits."""
    found = multiplier_for((2 * max(first, second)) ** 2 / ((1 << 2 * _LEFT_SHIFT) * made))
    if found.shift > 0:
        raise NpukitError("its output's scale is too small for squares in 32 bits", tries=WAYS)
    return found


def _divide(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    dividend, reciprocal = _integers(net, op, operands)
    return finished(net, op, (dividend * reciprocal + (1 << 31)) >> 32)


def _squared_difference(net: Net, op: Op, operands: Sequence[np.ndarray]) -> np.ndarray:
    first, second = _integers(net, op, operands)
    return finished(net, op, rescale((first - second) ** 2, square_rescaling(net, op)))


def _integers(net: Net, op: Op, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    pairs = zip(tables_of(net, op), aligned(net, op, operands), strict=True)
    return [table[value.view(np.uint8)].astype(np.int64) for table, value in pairs]


def _constants(net: Net, op: Op, output: Box) -> Iterator[Constant]:
    yield from constant_operands(net, op, output, broadcast_part)
    for role, table in zip(("first_table", "second_table"), tables_of(net, op), strict=True):
        yield role, table, "by the byte of an operand"


def _fits(net: Net, op: Op) -> None:
    square_rescaling(net, op)


OPS = (
    of_two(Divide, _divide, constants=_constants, names=names("DIV", "Div"), core_cycles=(22, 0, 0)),
    of_two(
        SquaredDifference,
        _squared_difference,
        constants=_constants,
        check=_fits,
        names=names("SQUARED_DIFFERENCE", ""),
        core_cycles=(22, 0, 0),
    ),
)
