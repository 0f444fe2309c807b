"""ONNX's own backend node tests, through the generated C on the emulator: how many of those that npukit claims pass.

python benchmarks/onnx_nodes.py        # fails if others pass than those that the tests' list does not name
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from frontend.onnx_nodes import claimed_tests, listed
from frontend.onnx_nodes_in_c import reasons


def main() -> None:
    found = {}
    for name, reason in reasons(list(claimed_tests())):
        found[name] = reason
        if reason:
            print(f"{name}: {reason}", flush=True)
    failed = {name: reason for name, reason in found.items() if reason}
    passed, count = len(found) - len(failed), len(found)
    print(f"{passed} of {count} claimed node tests pass, {100 * passed / count:.1f} %", file=sys.stderr)
    if failed != listed():
        sys.exit("these are not those that tests/frontend/onnx_node_failures.txt lists")


if __name__ == "__main__":
    main()
