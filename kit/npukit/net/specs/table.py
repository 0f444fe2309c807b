"""All op kinds by name, and the output shape of an op."""

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
    """The required shape of the op's output. Raises an error, without the op's name, if the inputs do not fit."""
    return SPECS[op.kind].shape(net, op)
