"""Transpositions on the core: routines for tensors as they lie densely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npukit.accel.cortex_m.code.assembly import Assembly
from npukit.accel.cortex_m.kernel import Routine as Code
from npukit.accel.cortex_m.kernel import entry_costs, routine
from npukit.accel.cortex_m.kernels.transpose import Axis, dense_strides, transposition
from npukit.accel.interface import Cost, Lowered, Routine, RoutineCall, Routines, Tile
from npukit.net.net import Net, Op
from npukit.net.ops import Transpose

_DIGEST_DIGITS = 8


@dataclass(frozen=True, eq=False)
class Transposition:
    """A whole transposition as one routine."""

    body: Assembly
    note = "transpose"

    @property
    def codes(self) -> tuple[Code, ...]:
        return (routine(self.body),)

    @property
    def cost(self) -> Cost:
        _, cycles = entry_costs(self.body, constants=False)
        return Cost(cycles, 0)

    def lowered(self, tile: Tile) -> Lowered:
        (code,) = self.codes
        named = Routine(f"{self.note}_{code.name[-_DIGEST_DIGITS:]}", self.body.text(), self.note)
        return Lowered((), Routines((RoutineCall(named, (tile.inputs[0].address, tile.output.address, 0, 0)),)))


def transposition_of(net: Net, op: Op) -> Transposition | None:
    """The routine for an op that transposes; None for others, and for more axes than there are registers."""
    attributes = op.attributes
    if not isinstance(attributes, Transpose):
        return None
    given, made = net.tensor(op.inputs[0]).shape, net.tensor(op.output).shape
    item = np.dtype(net.tensor(op.output).dtype).itemsize
    sources = dense_strides(given, item)
    strides = (sources[axis] for axis in attributes.axes)
    axes = map(Axis, made, strides, dense_strides(made, item))
    body = transposition(tuple(axes), item)
    return Transposition(body) if body else None
