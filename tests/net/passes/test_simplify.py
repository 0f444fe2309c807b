"""Ops, tensors and constants that nothing reads leave a net."""

from __future__ import annotations

from npukit.net.check import check_net
from npukit.net.parse import parse_net
from npukit.net.passes.simplify import without_unread

HALVES = "int8[1,4] scale 0.5 zero 0"
FUSED = f"""net fused
input x: {HALVES}
input r: {HALVES}
part a: {HALVES} = dense(x, w)
part y: {HALVES} = add(a, r)
op y: {HALVES} = fused(x, w, r)
op u: {HALVES} = add(x, r)
output y
constant w: int8[4,4] scale 1.0 zero 0 = {list(range(16))}
constant v: int8[4,4] scale 1.0 zero 0 = {list(range(16))}
"""


def test_the_tensors_between_the_parts_of_a_fused_op_stay() -> None:
    net = check_net(without_unread(parse_net(FUSED, {})))
    assert [op.name for op in net.ops] == ["y"]
    assert set(net.tensors) == {"x", "r", "a", "y", "w"}
    assert set(net.constants) == {"w"}
