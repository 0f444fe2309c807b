"""Images joined to themselves are resized, exactly."""

from __future__ import annotations

import numpy as np

from npukit.net.check import check_net
from npukit.net.net import Net
from npukit.net.parse import parse_net
from npukit.net.passes.simplify import with_repeats_as_resizing
from npukit.net.reference import run_reference

QUANTISED = "scale 0.5 zero 3"
TWICE = f"""net twice
input x: int8[1,2,3,4] {QUANTISED}
op a: int8[1,2,1,3,4] {QUANTISED} = reshape(x)
op b: int8[1,2,2,3,4] {QUANTISED} = concat(a, a) axis=2
op c: int8[1,4,3,1,4] {QUANTISED} = reshape(b)
op d: int8[1,4,3,3,4] {QUANTISED} = concat(c, c, c) axis=3
op y: int8[1,4,9,4] {QUANTISED} = reshape(d)
output y
"""
GIVEN = np.arange(24, dtype=np.int8).reshape(1, 2, 3, 4)


def changed(text: str) -> tuple[Net, Net]:
    net = check_net(parse_net(text, {}))
    return net, check_net(with_repeats_as_resizing(net))


def test_rows_and_columns_that_come_several_times_are_one_resize() -> None:
    net, found = changed(TWICE)
    assert [op.kind for op in found.ops] == ["resize_nearest", "reshape"]
    assert np.array_equal(run_reference(found, [GIVEN])[0], GIVEN.repeat(2, 1).repeat(3, 2))
    assert np.array_equal(run_reference(found, [GIVEN])[0], run_reference(net, [GIVEN])[0])


def test_images_that_follow_each_other_stay_joined() -> None:
    text = TWICE.replace("concat(a, a) axis=2", "concat(a, a) axis=1")
    net, found = changed(text.replace("b: int8[1,2,2,3,4]", "b: int8[1,4,1,3,4]"))
    assert [op.kind for op in found.ops if op.kind != "reshape"] == ["concat", "resize_nearest"]
    assert np.array_equal(run_reference(found, [GIVEN])[0], run_reference(net, [GIVEN])[0])
