"""The arithmetic of a depthwise kernel's row: which multiply-accumulate adds which inputs to which outputs.

Inputs come as halves of registers, weights too. A dual multiply-accumulate takes two taps where both halves hold the
inputs of two taps whose weights lie together; single ones take the rest. Taps outside the image are left out: inputs
count from their zero point, so a missing one adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Taps = tuple[int | None, int | None]
Half = tuple[str, str]
"""a register and "b" or "t", its bottom or top half"""


@dataclass(frozen=True)
class TapWeights:
    """The places of a row's weights: pairs of taps in one register, and each tap alone in a half."""

    pairs: Mapping[tuple[int, int], str]
    singles: Mapping[int, Half]


def products(taps: Taps, value: str, accumulator: str, weights: TapWeights) -> Iterator[str]:
    """Instructions, without their addend, that add a register's two inputs under the given taps to an accumulator."""
    low, high = taps
    if low is not None and high is not None and (low, high) in weights.pairs:
        yield f"smlad {accumulator}, {value}, {weights.pairs[low, high]}"
        return
    for tap, half in ((low, "b"), (high, "t")):
        if tap is not None:
            register, weight_half = weights.singles[tap]
            yield f"smla{half}{weight_half} {accumulator}, {value}, {register}"


def tap_under(column: int, window_start: int, kernel_width: int, width: int) -> int | None:
    """The tap of a window that looks at an input column, or None where there is none or the column is outside."""
    tap = column - window_start
    return tap if 0 <= tap < kernel_width and 0 <= column < width else None
