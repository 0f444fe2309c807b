"""ONNX's own backend node tests: of a sample, exactly those listed do not pass.

`benchmarks/onnx_nodes.py` runs them all, as continuous integration does, and says how many pass.
"""

from __future__ import annotations

from functools import cache

from onnx_nodes import NodeTest, claimed_tests, listed, verdict

EVERY = 6
"""The sample: one test in so many."""


@cache
def claimed() -> list[NodeTest]:
    return list(claimed_tests())


def test_those_of_a_sample_that_are_not_listed_pass() -> None:
    chosen = claimed()[::EVERY]
    found = {test.name: reason for test in chosen if (reason := verdict(test))}
    assert found == {test.name: listed()[test.name] for test in chosen if test.name in listed()}


def test_what_is_listed_is_claimed() -> None:
    assert set(listed()) <= {test.name for test in claimed()}
