"""Noise to fill a batch: every frame has different inputs."""

from __future__ import annotations

import numpy as np

from net.small_nets import image_net, remembering_net
from npukit.measure.cases import Cases, filled, sequences
from npukit.measure.golden import golden


def test_a_batch_has_no_two_frames_of_the_same_inputs() -> None:
    net = image_net()
    cases = golden(net).cases
    whole = filled(net, cases, 16)
    assert whole.count == 16
    assert len({array.tobytes() for array in whole.inputs[0]}) == 16
    assert np.array_equal(whole.inputs[0][: cases.count], cases.inputs[0])
    assert np.array_equal(whole.inputs[0], filled(net, cases, 16).inputs[0])
    assert sequences(whole, 16) == [[tuple(range(16))]]


def test_a_full_batch_is_left_as_it_is() -> None:
    cases = golden(image_net()).cases
    assert filled(image_net(), cases, cases.count) is cases
    assert filled(image_net(), cases, 1, least=cases.count + 1).count == cases.count + 1


def test_frames_of_a_sequence_are_not_added_to() -> None:
    net = remembering_net()
    cases = Cases((np.zeros((3, 1, 16), np.int8),), {}, sequence=3)
    assert filled(net, cases, 2) is cases
