"""ONNX's own backend node tests, through the C on the emulator. Of a sample, exactly the listed tests fail.

Continuous integration runs all of them: `benchmarks/onnx_nodes.py`.
"""

from __future__ import annotations

from functools import cache

import pytest

from frontend.onnx_nodes import NodeTest, claimed_tests, listed
from frontend.onnx_nodes_in_c import reasons

EVERY = 300
"""Every EVERY-th test is in the sample."""


@cache
def claimed() -> list[NodeTest]:
    return list(claimed_tests())


@pytest.mark.exhaustive
def test_those_of_a_sample_that_are_not_listed_pass() -> None:
    chosen = claimed()[::EVERY]
    found = {name: reason for name, reason in reasons(chosen) if reason}
    assert found == {test.name: listed()[test.name] for test in chosen if test.name in listed()}


@pytest.mark.exhaustive
def test_what_is_listed_is_claimed() -> None:
    assert set(listed()) <= {test.name for test in claimed()}
