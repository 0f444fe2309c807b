"""What depends on constants alone is computed once."""

from __future__ import annotations

import numpy as np

from npukit.net.parse import parse_net
from npukit.net.passes.simplify import fold_constants

NET = """\
net shifted
input x: int8[2,3] scale 0.5 zero 0
op c: int8[2,3] scale 0.25 zero 0 = requantize(k)
op y: int8[2,3] scale 0.5 zero 0 = add(x, c)
output y
constant k: int8[2,3] scale 0.5 zero 0 = [1, -2, 3, 4, 5, -60]
"""


def test_ops_of_constants_alone_become_constants() -> None:
    folded = fold_constants(parse_net(NET, {}))
    assert [op.name for op in folded.ops] == ["y"]
    assert np.array_equal(folded.constants["c"], [[2, -4, 6], [8, 10, -120]])


def test_an_output_stays_an_op() -> None:
    folded = fold_constants(parse_net(NET.replace("output y", "output c"), {}))
    assert "c" in {op.name for op in folded.ops}
