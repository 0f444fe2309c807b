"""Each pass from text to text, and the net around the op that an error names."""

from __future__ import annotations

import pytest

from npukit.accel.engines import plugins_of, with_core
from npukit.board.board import load_board
from npukit.errors import NpukitError
from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.text import print_net
from npukit.passes import PLACING, SIMPLIFYING, Wanted, run_passes

TEXT = """net small
input x: int8[1,2,2,4] scale 0.5 zero 0
op y: int8[1,2,2,4] scale 0.5 zero 0 = conv2d(x, w)
op z: int8[1,2,2,4] scale 0.5 zero 0 = add(y, x)
op s: int8[1,2,2,4] scale 0.00390625 zero -128 = softmax(z)
output s
constant w: int8[4,1,1,4] scale 1.0 zero 0 = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
"""
DEAD = """net dead
input x: int8[1,2,2,2] scale 0.5 zero 0
op y: int8[1,2,2,2] scale 0.5 zero 0 = conv2d(x, v, b)
op z: int8[1,2,2,1] scale 0.5 zero 0 = conv2d(y, w)
output z
constant v: int8[2,1,1,2] scale 1.0 zero 0 = [1, 2, 0, 0]
constant b: int32[2] = [0, 3]
constant w: int8[1,1,1,2] scale 1.0 zero 0 = [5, 7]
"""
ON_CORE = 'on cpu because "the MAC array has no softmax"'


def net(text: str) -> Net:
    return check_net(parse_net(text, {}))


def wanted(*, strict: bool = False, only: str | None = None) -> Wanted:
    return Wanted(with_core(plugins_of(load_board("pe-mesh"))), only=only, slower_too=True, strict=strict)


def ops(found: Net) -> list[str]:
    """The lines of ops, behind their outputs."""
    return [line.partition(" = ")[2] for line in print_net(found).splitlines() if line.startswith(("op ", "part "))]


def after(name: str, text: str, given: Wanted) -> list[str]:
    """The ops behind a pass by its name, and behind those before it."""
    names = [each.name for each in PLACING]
    return ops(run_passes(net(text), PLACING[: names.index(name) + 1], given))


def test_dead_channels_become_a_bias() -> None:
    (pruned,) = {print_net(run_passes(net(DEAD), SIMPLIFYING, wanted()))}
    lines = pruned.splitlines()
    assert 'op y: int8[1,2,2,1] scale 0.5 zero 0 = conv2d(x, "y weights", "y bias")' in lines
    assert 'constant "y weights": int8[1,1,1,2] scale 1.0 zero 0 = [1, 2]' in lines
    assert 'constant "z bias": int32[1] = [21]' in lines, "3 in the channel that is gone, times 7"


def test_each_op_is_placed() -> None:
    assert after("place", TEXT, wanted()) == [
        "conv2d(x, w) on mac_array",
        "add(y, x) on mac_array",
        f"softmax(z) {ON_CORE}",
    ]
    assert after("place", TEXT, wanted(only="cpu"))[0].startswith("conv2d(x, w) on cpu because ")


def test_patterns_are_one_op() -> None:
    found = after("patterns", TEXT, wanted())
    assert found[:2] == ["conv2d(x, w)", "add(y, x)"], "the parts"
    assert found[2].startswith("fused(")
    assert found[2].endswith(" on mac_array")


def test_a_net_for_one_engine_keeps_its_order() -> None:
    assert after("overlap", TEXT, wanted(only="cpu")) == after("patterns", TEXT, wanted(only="cpu"))


def test_an_error_shows_the_op_in_its_surroundings() -> None:
    with pytest.raises(NpukitError, match="--strict: s ") as refused:
        after("strict", TEXT, wanted(strict=True))
    heading, *lines = refused.value.facts
    assert heading == "in pass strict:"
    assert [line[:4] for line in lines] == ["  z:", "> s:"]
    assert lines[1].endswith(ON_CORE)
    assert refused.value.tries


def test_names_of_passes_are_unique() -> None:
    names = [each.name for each in (*SIMPLIFYING, *PLACING)]
    assert len(set(names)) == len(names)
