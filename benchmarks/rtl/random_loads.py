"""Random chains of DMA descriptors on a chip of 4 x 4 PEs: RTL beside the built-in emulator, in bytes and cycles.

PYTHONPATH=kit:tests:. python benchmarks/rtl/random_loads.py [--loads 80] [--seed 0] [--program FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

from rtl.mesh import compile_mesh
from rtl.network_loads import COLUMNS, ROWS, Load, Mesh, differences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--program", type=Path, help="a compiled mesh, to save the minute of compilation")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        begin, mesh = perf_counter(), Mesh(asked.program or compile_mesh(Path(scratch), COLUMNS, ROWS))
        descriptors = differ = 0
        for seed in range(asked.seed, asked.seed + asked.loads):
            load = Load(seed)
            descriptors += load.count
            found = differences(mesh, load)
            differ += bool(found)
            for each in found:
                print(f"load {seed}: {each}")
        mesh.close()
    print(f"{asked.loads} loads, {descriptors:,} descriptors: {differ} differ, {mesh.violations} failed assertions")
    print(f"{perf_counter() - begin:.0f} s")
    raise SystemExit(differ or mesh.violations)


if __name__ == "__main__":
    main()
