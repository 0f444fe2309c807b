"""Golden cases: chosen for coverage, always the same, for any net."""

from __future__ import annotations

import numpy as np
import pytest

from net.small_nets import image_net, remembering_net
from npukit.measure.cases import noise
from npukit.measure.golden import GOLDEN_CASES, GOLDEN_FRAMES, golden
from npukit.net.examples import example
from npukit.net.ops.table import SPECS
from npukit.net.reference import evaluate
from npukit.net.reference.coverage import Watch


def test_they_reach_more_than_as_many_cases_of_noise() -> None:
    net = image_net()
    found = golden(net)
    watch = Watch(net)
    _, seen = watch.frame([noise(net, name, GOLDEN_CASES) for name in net.inputs])
    possible = watch.possible(seen)
    by_noise = sum(int((places & seen[key].any(axis=0)).sum()) for key, places in possible.items())
    assert found.coverage.count > by_noise
    assert found.cases.count <= GOLDEN_CASES
    told = found.to_json()
    assert told["reached"] + sum(each["count"] for each in told["missing"]) == told["events"]


def test_they_reach_what_is_said_of_them() -> None:
    net = image_net()
    found = golden(net)
    _, seen = Watch(net).frame(list(found.cases.inputs))
    assert all(np.array_equal(seen[key].any(axis=0), places) for key, places in found.coverage.reached.items())


def test_they_are_always_the_same() -> None:
    one, other = (golden(image_net()).cases for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_any_op_has_some_and_the_reference_gives_their_outputs(kind: str) -> None:
    net = example(kind)
    cases = golden(net).cases
    assert cases.count >= 3
    values = evaluate(net, list(cases.inputs))
    for index, name in enumerate(net.outputs):
        assert np.array_equal(cases.expected[index].view(np.uint8), values[name].view(np.uint8))


def test_of_a_network_with_states_they_are_sequences() -> None:
    net = remembering_net()
    cases = golden(net).cases
    assert (cases.sequence, cases.in_time) == (GOLDEN_FRAMES, True)
    before = None
    for frame in range(GOLDEN_FRAMES):
        before = evaluate(net, [array[frame] for array in cases.inputs], before)
        assert np.array_equal(before[net.outputs[0]], cases.expected[0][frame])
