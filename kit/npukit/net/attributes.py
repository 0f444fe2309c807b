"""The base of op kinds' attributes, and the attributes of an op as C code. The kinds are in `net/ops/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

MOST_CYCLES = 1 << 64
"""Bound of predicted cycles."""

Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
"""Padding: top, left, bottom, right."""


@dataclass(frozen=True)
class Attributes:
    """Base class of all attributes. The kind of an op is the name of its class, as in `average_pool` of `AveragePool`,
    unless the class states another."""

    kind: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if "kind" not in cls.__dict__:
            cls.kind = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", cls.__name__).lower()


Run = tuple[int, int, int, int]
"""Spans [low, high) of consecutive steps: the number of steps, low and high of the first, and how far both move on with
each step."""


class RowReads(NamedTuple):
    """The part of an array read by each step of a loop over rows of the output.

    `spans`: the spans of the array's first long axes, for each position of the output's first long axes. Empty if each
    step may read the whole array. `moves`: elements that all subscripts move on with a step of each loop; 0 for the
    output and a loop whose steps differ in more than subscripts that move so.
    """

    spans: tuple[tuple[Run, ...], ...] = ()
    moves: tuple[int, ...] = ()


@dataclass(frozen=True)
class TvmCode(Attributes):
    """An op without a kind of its own, as C code: the body of a function, in float or integer arithmetic.

    The code comes from TVM, or is `given`: a template in `templates/ops` or the user's code of a custom op.

    inputs: activations, then constants, of any type. The C code reads the inputs as p0, p1, ... and has parameters
    `output` and, if `work_bytes` is not 0, `work`. `what`: names of the Relax operators. `why`: reason for the lack of
    an integer op. `macs`: number of multiply-accumulates. `cycles`: prediction for a Cortex-M4F. `rows`: the reads of
    the output (first) and the inputs, if a loop of the code computes a row of the output in each step and uses nothing
    computed by other steps; else empty. `loop`: the number of loop headers in the code before the loop's.
    """

    what: str = ""
    code: str = ""
    work_bytes: int = 0
    why: str = ""
    macs: int = 0
    cycles: int = 0
    given: bool = False
    loop: int = 0
    rows: tuple[RowReads, ...] = ()
