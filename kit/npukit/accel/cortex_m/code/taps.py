"""The arithmetic of a depthwise kernel's row: the multiply-accumulates that add inputs to outputs.

Inputs and weights are halves of registers. A dual multiply-accumulate computes two taps if a register holds both inputs
and another both weights; single multiply-accumulates compute the rest. Taps outside the image are omitted: inputs are
relative to their zero point, so a missing tap adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Taps = tuple[int | None, int | None]
Half = tuple[str, str]
"""a register and its half: "b" bottom, "t" top"""


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
