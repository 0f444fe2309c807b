"""Plateaus: the low values of a result, if all readers map these values to a single number.

A hard swish maps all values below -3 to zero, a table with a lower limit all values below the limit. These values
saturate in int8 without harm, and the range stays short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from npukit.quantize.function import outputs
from npukit.quantize.points import Points


def plateaus(points: Points, runs: Iterator[list[np.ndarray]]) -> dict[Any, float]:
    """The ends of plateaus in the data, by result. `runs`: values of the quantised results."""
    order = points.in_order()
    pairs = {each: _Plateau(order.index(source), order.index(each)) for source, each in _functions(points)}
    for values in runs if pairs else ():
        for plateau in pairs.values():
            plateau.see(values)
    ends = dict[Any, float]()
    for each in pairs.values():
        top = each.top if each.top < each.end else -inf
        ends[order[each.source]] = min(ends.get(order[each.source], inf), top)
    lowest = {order[each.source]: each.low for each in pairs.values()}
    return {source: end for source, end in ends.items() if lowest[source] < end}


def _functions(points: Points) -> Iterator[tuple[Any, Any]]:
    """Each quantised result read by functions of single numbers alone, with each of the functions' results."""
    for source in points.in_order():
        found, todo = dict[Any, None](), [source]
        while todo:
            inner = [each for each in points.readers.get(todo.pop(), ()) if each not in found]
            found |= dict.fromkeys(inner)
            todo += [each for each in inner if each not in points.quantised]
        ends = {*outputs(points.module)}
        if found and source not in ends and all(points.leaf(each).same_as(source) for each in found):
            yield from ((source, each) for each in found if each in points.quantised)


@dataclass
class _Plateau:
    """The values of a result and of a function of it, by their places. `level`: the function of the lowest value, and
    of values up to `top`. `end`: the least value with another number."""

    source: int
    made: int
    low: float = inf
    level: float = 0.0
    top: float = -inf
    end: float = inf

    def see(self, values: Sequence[np.ndarray]) -> None:
        given, made = values[self.source].ravel(), values[self.made].ravel()
        if len(given) != len(made) or not len(given):
            self.end = -inf
            return
        lowest = int(given.argmin())
        low, level = float(given[lowest]), float(made[lowest])
        if low < self.low:
            if level != self.level:
                self.end, self.top = min(self.end, self.low), -inf
            self.low, self.level = low, level
        self.end = min(self.end, float(given.min(where=made != self.level, initial=inf)))
        self.top = max(self.top, float(given.max(where=(made == self.level) & (given < self.end), initial=-inf)))
