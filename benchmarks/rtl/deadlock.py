"""No packet of the network waits for itself: the graph of waiting of each board has no cycle.

    PYTHONPATH=kit:tests:. python benchmarks/rtl/deadlock.py [BOARD ...]

A node is a place where packets wait: a buffer of an input or of a border, for each class, and on a torus for each part
of a way. An edge leads to every place for which a packet there may wait (`tests/rtl/waiting.py`).
"""

from __future__ import annotations

import argparse
from time import perf_counter

from npukit.board.board import load_board
from rtl.waiting import Network, Waiting, cycle_of

BOARDS = ("pe-mesh", "pe-mesh-152", "pe-mesh-7296", "spinnaker2", "spinnaker2-48")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boards", nargs="*", default=BOARDS, metavar="BOARD")
    found = 0
    print(f"{'board':<16} {'chips':>7} {'routers':>8} {'places':>9} {'waits':>9}  cycle")
    for name in parser.parse_args().boards:
        begin, network = perf_counter(), Network(load_board(name).mesh)
        waiting = Waiting(network)
        cycle = cycle_of(waiting)
        found += bool(cycle)
        counts = len(waiting.edges), sum(map(len, waiting.edges.values()))
        size = f"{network.chips[0]} x {network.chips[1]}"
        told = f"of {len(cycle) - 1} places" if cycle else f"none ({perf_counter() - begin:.0f} s)"
        print(f"{name:<16} {size:>7} {network.columns * network.rows:>8,} {counts[0]:>9,} {counts[1]:>9,}  {told}")
    raise SystemExit(f"{found} boards may stand still" if found else 0)


if __name__ == "__main__":
    main()
