"""RMS norms in parts. Each PE sums the squares of its own part of a row, so no PE needs the whole row."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Norm, NormBySquares, Squares
from npukit.net.tensor import Tensor

PIECE = 16
"""Elements per sum of squares: the outputs of a dense layer that the MAC array computes at once."""
_REASON = "sums are added by the core"


def has_squares(net: Net, op: Op) -> bool:
    """True for an RMS norm of a single row of several pieces. With more rows, each PE has whole rows."""
    if not isinstance(op.attributes, Norm) or op.attributes.centred:
        return False
    *rows, length = net.tensor(op.output).shape
    return prod(rows) == 1 and length % PIECE == 0 and length > PIECE


def cut_in_squares(net: Net, name: str) -> Net:
    """The net with an RMS norm split in two: op `NAME_squares` sums the squares of each piece, and the norm reads the
    sums."""
    norm = next(op for op in net.ops if op.name == name)
    attributes, source = norm.of(Norm), norm.inputs[0]
    *rows, length = net.tensor(norm.output).shape
    squares = Tensor(f"{norm.output}_squares", (*rows, length // PIECE, 1), "int32")
    first = Op(f"{name}_squares", Squares(PIECE), (source,), (squares.name,)).placed(CORE, _REASON)
    scaling = NormBySquares(attributes.epsilon, attributes.shift, attributes.clamp)
    second = replace(norm, attributes=scaling, inputs=(source, squares.name, *norm.inputs[1:]))
    ops = tuple(each for op in net.ops for each in ((first, second) if op is norm else (op,)))
    return replace(net, ops=ops, tensors={**net.tensors, squares.name: squares})
