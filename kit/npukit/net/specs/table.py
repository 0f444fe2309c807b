"""Every kind of op by its name, and what a net asks of an op's kind."""

from __future__ import annotations

from collections.abc import Mapping

from npukit.net.net import Net, Op
from npukit.net.specs.elementwise import ELEMENTWISE
from npukit.net.specs.filters import FILTERS
from npukit.net.specs.moves import MOVES
from npukit.net.specs.pools import POOLS
from npukit.net.specs.shapes import Shape
from npukit.net.specs.spec import OpSpec

SPECS: Mapping[str, OpSpec] = {spec.kind: spec for spec in (*FILTERS, *ELEMENTWISE, *POOLS, *MOVES)}


def output_shape(net: Net, op: Op) -> Shape:
    """The shape the op's output must have; an error without the op's name if its inputs do not suit it."""
    return SPECS[op.kind].shape(net, op)
