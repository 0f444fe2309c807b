"""The steps of a quantisation, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from npukit.quantize.observe import ObservedRange

FOUR_BITS = "weights of 4 bits"


@dataclass(frozen=True)
class KeptLayers:
    """The layers that stay in float in a network quantised here, by their names in the int8 network. Dense layers read
    the layers `in_int16` in 16 bits."""

    in_float: Sequence[str] = ()
    in_int16: Sequence[str] = ()


@dataclass(frozen=True)
class Treatment:
    """Steps of a quantisation. Results have their place among all quantised results of the float function, in order.
    `compensated`: weights compensate the rounding of earlier weights. `equalised`: power of the factors of channels; 0
    for none. `ranges`: factors of ranges. `twice`: first results of chains with twice the steps. `in_float`: results in
    float, besides layers kept by the user; results of linear ops are the sums of integers. `narrow`: places of linear
    ops, among all, with weights of 4 bits."""

    keep: KeptLayers = KeptLayers()
    compensated: bool = False
    equalised: float = 0
    ranges: Mapping[int, float] = field(default_factory=dict)
    twice: frozenset[int] = frozenset()
    in_float: frozenset[int] = frozenset()
    narrow: frozenset[int] = frozenset()

    def told(self) -> tuple[str, ...]:
        """The steps in words, for the whole network."""
        told = ["weights compensated"] if self.compensated else []
        told += [f"channels equalised, power {self.equalised:g}"] if self.equalised else []
        counts = {"smaller range": self.ranges, "twice the steps": self.twice, "float": self.in_float}
        counts[FOUR_BITS] = self.narrow
        return (*told, *(f"{step}: {_results(len(places))}" for step, places in counts.items() if places))

    def done(self, place: int) -> tuple[str, ...]:
        """The steps for a result, in words."""
        told = [f"{self.ranges[place]:g} of the range"] if place in self.ranges else []
        told += ["twice the steps"] if place in self.twice else []
        return (*told, *(["float"] if place in self.in_float else []))

    def scaled(self, ranges: Mapping[Any, ObservedRange]) -> dict[Any, ObservedRange]:
        factors = (self.ranges.get(place, 1) for place in range(len(ranges)))
        pairs = zip(ranges.items(), factors, strict=True)
        return {each: ObservedRange(around.low * by, around.high * by) for (each, around), by in pairs}


def _results(count: int) -> str:
    return "1 result" if count == 1 else f"{count} results"
