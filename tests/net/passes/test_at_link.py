"""Conversions at a network's ends: which of them the link does, and what is left for the PEs."""

from __future__ import annotations

import numpy as np
import pytest

from npukit.net.net import LINK, Net
from npukit.net.parse import parse_net
from npukit.net.passes.at_link import around, conversions_of, inside, swapped, with_ends_at_link, without_link
from npukit.net.passes.simplify import without_unread_constants
from npukit.net.reference import run_reference
from npukit.net.text import print_net

MIDDLE = "op m: int8[1,2,2,4] scale 0.5 zero 3 = maximum(q, q)\n"
ENDS = """net ends
input x: float32[1,2,2,4]
op q: int8[1,2,2,4] scale 0.5 zero 3 = quantize(x, o, s)
{middle}op y: float32[1,2,2,4] = dequantize(m)
output y
constant o: float32[1] = [0.0]
constant s: float32[1] = [0.5]
"""


def converted(text: str) -> Net:
    return with_ends_at_link(parse_net(text, {}))


def at_link(net: Net) -> list[str]:
    return [op.name for op in net.ops if op.engine == LINK]


def test_floats_are_quantised_and_made_by_the_link() -> None:
    net = converted(ENDS.format(middle=MIDDLE))
    assert at_link(net) == ["q", "y"]
    within = inside(net)
    assert (within.inputs, within.outputs, [op.name for op in within.ops]) == (("q",), ("m",), ["m"])
    given = np.linspace(-3, 3, 16, dtype=np.float32).reshape(1, 2, 2, 4)
    quantised = np.rint(given / np.float32(0.5)).astype(np.int8) + np.int8(3)
    (between,) = run_reference(within, [quantised])
    (whole,) = run_reference(net, [given])
    assert np.array_equal(whole, (between.astype(np.float32) - 3) * np.float32(0.5))


def test_a_variant_of_the_inside_gets_the_conversions_back() -> None:
    net = converted(ENDS.format(middle=MIDDLE))
    assert print_net(around(inside(net), net)) == print_net(net)
    assert around(net, net) is net


def test_a_variant_without_unread_constants_gets_those_of_the_conversions_back() -> None:
    net = converted(ENDS.format(middle=MIDDLE))
    variant = without_unread_constants(inside(net))
    assert not variant.constants
    assert print_net(around(variant, net)) == print_net(net)


def test_the_core_does_it_all_where_there_is_no_link() -> None:
    net = without_link(converted(ENDS.format(middle=MIDDLE)))
    assert at_link(net) == []
    assert inside(net) is net


@pytest.mark.parametrize(
    ("middle", "kept"),
    [
        ("op m: int8[1,2,2,4] scale 0.5 zero 3 = maximum(q, q)\nop x2: float32[1,2,2,4] = dequantize(q)\n", "q"),
        ("op m: int8[1,2,2,4] scale 0.5 zero 3 = quantize(x, o, s)\n", ""),
    ],
)
def test_what_others_read_as_it_comes_is_left_to_the_pes(middle: str, kept: str) -> None:
    text = ENDS.format(middle=middle).replace("output y", "output y\noutput x2" if "x2" in middle else "output y")
    found = at_link(converted(text))
    assert (kept in found) == bool(kept)
    assert ("q" in found) == bool(kept)


def test_bytes_of_another_meaning_are_looked_up_by_the_link() -> None:
    net = converted(
        "net bytes\ninput x: uint8[1,4] scale 0.5 zero 128\nop q: int8[1,4] scale 0.5 zero 0 = requantize(x)\n"
        "op m: int8[1,4] scale 0.5 zero 0 = maximum(q, q)\noutput m\n"
    )
    assert at_link(net) == ["q"]


def test_a_state_shown_in_another_shape_is_given_by_the_pes() -> None:
    """By the time the link reads an output, the state has its next value."""
    net = converted(
        "net shown\ninput x: int8[1,4] scale 0.5 zero 3\n"
        "op r: int8[4,1] scale 0.5 zero 3 = reshape(h)\nop y: int8[4,1] scale 0.25 zero 3 = requantize(r)\n"
        "op next: int8[1,4] scale 0.5 zero 3 = maximum(h, x)\noutput y\n"
        "state h: int8[1,4] scale 0.5 zero 3 becomes next begins 1\n"
    )
    assert at_link(net) == []


PLANES = """net planes
input x: float32[1,3,2,4]
op q: int8[1,3,2,4] scale 0.5 zero 3 = quantize(x, o, s)
op t: int8[1,2,4,3] scale 0.5 zero 3 = transpose(q) axes=[0, 2, 3, 1]
op m: int8[1,2,4,3] scale 0.5 zero 3 = maximum(t, t)
op u: int8[{shape}] scale 0.5 zero 3 = transpose(m) axes=[{axes}]
op y: float32[{shape}] = dequantize(u)
output y
constant o: float32[1] = [0.0]
constant s: float32[1] = [0.5]
"""


def test_the_link_swaps_planes_and_pixels() -> None:
    net = converted(PLANES.format(shape="1,3,2,4", axes="0, 3, 1, 2"))
    assert at_link(net) == ["q", "t", "u", "y"]
    assert (inside(net).inputs, inside(net).outputs) == (("t",), ("m",))
    assert [op.name for op in conversions_of(net, "x")] == ["q", "t"]
    assert [op.name for op in conversions_of(net, "y")] == ["u", "y"]
    assert [swapped(net, op) for op in net.ops if op.kind == "transpose"] == [(3, 8), (8, 3)]


def test_an_order_that_is_no_swap_is_left_to_the_pes() -> None:
    net = converted(PLANES.format(shape="1,3,4,2", axes="0, 3, 2, 1"))
    assert at_link(net) == ["q", "t", "y"]


def test_what_is_read_before_its_order_changes_lies_in_memory() -> None:
    text = PLANES.format(shape="1,3,2,4", axes="0, 3, 1, 2").replace("output y", "output y\noutput u")
    assert at_link(converted(text)) == ["q", "t", "y"]
