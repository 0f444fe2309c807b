"""ONNX's own backend node tests, through the generated C on the emulator: how many of the claimed tests pass.

    python benchmarks/onnx_nodes.py        # fails unless exactly the tests of the tests' list fail

Runs one process for each core of this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from frontend.onnx_nodes import NodeTest, claimed_tests, listed
from frontend.onnx_nodes_in_c import BATCH, reasons

LEAST = 0.9
"""Least share of the claimed tests that must pass."""


def main() -> None:
    found = dict(_found(list(claimed_tests())))
    failed = {name: reason for name, reason in found.items() if reason}
    passed, count = len(found) - len(failed), len(found)
    print(f"{passed} of {count} claimed node tests pass, {passed / count:.1%}", file=sys.stderr)
    if passed < LEAST * count:
        sys.exit(f"at least {LEAST:.0%} must")
    if failed != listed():
        sys.exit("those that do not are others than tests/frontend/onnx_node_failures.txt lists")


def _found(tests: list[NodeTest]) -> Iterator[tuple[str, str]]:
    batches = [tests[start : start + BATCH] for start in range(0, len(tests), BATCH)]
    with get_context("fork").Pool(os.cpu_count()) as pool:
        for each in pool.imap_unordered(_reasons, batches, chunksize=1):
            for name, reason in each:
                if reason:
                    print(f"{name}: {reason}", flush=True)
                yield name, reason


def _reasons(tests: list[NodeTest]) -> list[tuple[str, str]]:
    return list(reasons(tests))


if __name__ == "__main__":
    main()
