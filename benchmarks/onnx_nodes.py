"""ONNX's own backend node tests: how many of those that npukit claims pass, and why the others do not.

python benchmarks/onnx_nodes.py        # fails if others pass than those that the tests' list does not name
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from frontend.onnx_nodes import NodeTest, claimed_tests, listed, verdict


def reason_of(test: NodeTest) -> str:
    """Why a test does not pass; a fault of npukit's own is no reason to stop."""
    try:
        return verdict(test)
    except Exception as fault:
        return f"CRASH {type(fault).__name__}: {fault}".partition("\n")[0]


def main() -> None:
    found = {}
    for test in claimed_tests():
        found[test.name] = reason_of(test)
        if found[test.name]:
            print(f"{test.name}: {found[test.name]}", flush=True)
    failed = {name: reason for name, reason in found.items() if reason}
    passed, count = len(found) - len(failed), len(found)
    print(f"{passed} of {count} claimed node tests pass, {100 * passed / count:.1f} %", file=sys.stderr)
    if failed != listed():
        sys.exit("these are not those that tests/frontend/onnx_node_failures.txt lists")


if __name__ == "__main__":
    main()
