"""Runs a float module over calibration data and records the ranges of its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, frexp, isfinite, isnan, ldexp
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import IRModule

from npukit.errors import NpukitError, first_line
from npukit.net.importer.lowering import legalized
from npukit.quantize.function import rewritten, substituted

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]
"""Maps the inputs of a case to the values of the chosen variables."""

BINS = 2048

STEADY_BITS, SLACK = 8, 2.0**-10
"""Significant bits of a range's ends, and the excess, in steps of the last bit, that is rounded down instead of up.
Processors and their mathematical functions differ in the last of 24 bits. A range wider by 0.4 % costs 0.03 dB."""


@dataclass(frozen=True)
class ObservedRange:
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray) -> ObservedRange:
        return cls(float(values.min()), float(values.max()))

    def joined(self, other: ObservedRange) -> ObservedRange:
        return ObservedRange(min(self.low, other.low), max(self.high, other.high))

    @property
    def steady(self) -> ObservedRange:
        """The range with its ends moved outwards to few bits, equal on every machine."""
        return ObservedRange(-_upwards(-self.low), _upwards(self.high))


def _upwards(end: float) -> float:
    if not isfinite(end):
        return end
    shift = STEADY_BITS - frexp(end)[1]
    return ldexp(ceil(ldexp(end, shift) - SLACK), -shift)


def runner(module: IRModule, chosen: Sequence[Any]) -> Run:
    """The module compiled for this machine. Its results are the values of the chosen variables and parameters."""
    known: dict[Any, Any] = {}

    def emit(builder: relax.BlockBuilder, variable: Any, value: Any) -> None:
        known[variable] = builder.emit(substituted(value, known))

    observed = rewritten(module, emit, lambda _: [known.get(variable, variable) for variable in chosen])
    target = tvm.target.Target({"kind": "llvm"})
    here: Any = tvm.cpu()
    try:
        with target:
            legal = legalized(observed)
        machine: Any = relax.VirtualMachine(tvm.compile(legal, target=target), here)
    except Exception as fault:
        said = first_line(fault)
        raise NpukitError(f"the float model cannot be run to calibrate it: TVM says {said!r}") from fault

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = [tvm.runtime.tensor(np.ascontiguousarray(array)) for array in inputs]
        return [value.numpy() for value in machine["main"](*given)]

    return run


def extremes(runs: Iterator[list[np.ndarray]], names: Sequence[str]) -> list[ObservedRange]:
    """The range from the smallest to the largest value of each variable, in few bits. `names`: the layers of the
    variables, each layer after its sources."""
    seen: list[ObservedRange] = []
    for values in runs:
        now = list(map(ObservedRange.of, values))
        wrong = next((name for name, each in zip(names, now, strict=True) if isnan(each.low)), None)
        if wrong is not None:
            raise NpukitError(
                f"layer {wrong} of the float model computes values that are no numbers of the cases for calibration",
                tries=["cases without values near the largest of a float", "run the model on these cases in its tool"],
            )
        seen = [before.joined(after) for before, after in zip(seen, now, strict=True)] if seen else now
    return [each.steady for each in seen]


def percentiles(runs: Iterator[list[np.ndarray]], whole: Sequence[ObservedRange], cut: float) -> list[ObservedRange]:
    """The ranges without the fraction `cut` of all values at either end."""
    counts = [np.zeros(BINS, np.int64) for _ in whole]
    for values in runs:
        for count, value, around in zip(counts, values, whole, strict=True):
            count += np.histogram(value, BINS, (around.low, around.high))[0]
    trimmed = []
    for count, around in zip(counts, whole, strict=True):
        edges = np.linspace(around.low, around.high, BINS + 1)
        below = np.concatenate([[0], np.cumsum(count)]) / count.sum()
        low = edges[np.searchsorted(below, cut, side="right") - 1]
        trimmed.append(ObservedRange(float(low), float(edges[np.searchsorted(below, 1 - cut, side="left")])))
    return trimmed
