"""RMS norms in parts: whoever makes a part of a row makes the sum of its squares too, and none reads all of the row."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from npukit.net.net import CORE, Net, Op
from npukit.net.ops import Norm, NormBySquares, Squares
from npukit.net.tensor import Tensor

PIECE = 16
"""Numbers of a row whose squares are summed up together: as many as the MAC array makes of a dense layer at once."""
_REASON = "sums are added by the core"


def has_squares(net: Net, op: Op) -> bool:
    """True of an RMS norm of a single row, of several pieces: of more rows each PE has whole ones."""
    if not isinstance(op.attributes, Norm) or op.attributes.centred:
        return False
    *rows, length = net.tensor(op.output).shape
    return prod(rows) == 1 and length % PIECE == 0 and length > PIECE


def cut_in_squares(net: Net, name: str) -> Net:
    """The net in which an RMS norm is given the squares of the pieces of its row, summed up by an op `NAME_squares`."""
    norm = next(op for op in net.ops if op.name == name)
    attributes, source = norm.attributes, norm.inputs[0]
    assert isinstance(attributes, Norm)
    *rows, length = net.tensor(norm.output).shape
    squares = Tensor(f"{norm.output}_squares", (*rows, length // PIECE, 1), "int32")
    first = Op(f"{name}_squares", Squares(PIECE), (source,), (squares.name,)).placed(CORE, _REASON)
    scaling = NormBySquares(attributes.epsilon, attributes.shift, attributes.clamp)
    second = replace(norm, attributes=scaling, inputs=(source, squares.name, *norm.inputs[1:]))
    ops = tuple(each for op in net.ops for each in ((first, second) if op is norm else (op,)))
    return replace(net, ops=ops, tensors={**net.tensors, squares.name: squares})
