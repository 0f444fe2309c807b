"""Random chains of commands on the MAC array in SystemVerilog, beside the numpy model: bytes, registers and cycles.

    PYTHONPATH=kit:tests:. python benchmarks/rtl/random_commands.py [--count 10000] [--seed 0]

Exit status 1 if anything differs, or if Verilator warns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from npukit.board.board import load_board
from rtl.verilated import compile_array, differences, is_installed, lint

AT_A_TIME = 200
"""Chains of a run. Each takes 128 KB in memory, twice."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not is_installed():
        sys.exit("Verilator is not installed.\nThings to try:\n  apt-get install verilator")
    warnings = lint()
    print(warnings or "no warning of Verilator")
    with tempfile.TemporaryDirectory() as folder:
        differing = compared(compile_array(Path(folder)), given.seed, given.count)
    sys.exit(1 if warnings or differing else 0)


def compared(program: Path, seed: int, count: int) -> int:
    """Compare `count` chains. Returns the number of chains that differ."""
    slot = load_board("pe-mesh").accelerator_named("mac_array")
    assert slot is not None
    differing = 0
    for done in range(0, count, AT_A_TIME):
        now = min(AT_A_TIME, count - done)
        found = differences(program, slot.figures, seed + done, now)
        differing += len(found)
        print("\n".join(found) or f"{done + now} chains, {differing} differ", flush=True)
    return differing


if __name__ == "__main__":
    main()
