"""What the tuned constants of the core's kernels are worth: the same choice of kernels with other values.

    python benchmarks/core/kernel_constants.py MODEL...

Each constant of `TUNED` is set to each of its other values, with all else as it is, and the kernels of each model are
chosen for one Cortex-M4. A line says by how much the choice takes longer than with the constant as it stands, model by
model (instructions and cycles, which count alike), and in brackets how many more bytes of flash and of SRAM it takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.large.planner_constants import constant

from npukit.accel.core_nodes import core_nodes
from npukit.accel.cortex_m.code.block_shape import Unrolling
from npukit.accel.cortex_m.network import KernelChoice, Node, choose_thriftily
from npukit.board.board import load_board
from npukit.options import Options
from npukit.pipeline import prepare
from npukit.progress import Silent

BOARD = "mps2-an386"
TUNED: Mapping[str, Sequence[Any]] = {
    "network._MACS_PER_BYTE_WORTH": (100_000, 1_000_000),
    "network._WORTH_SAVING": (0.5, 0.9),
    "network._WORTH_SPENDING": (1.0, 1.1),
    "code.gather._UNROLLED_WORDS": (8, 64),
    "code.gather._LOOPED_WORDS": (4, 16),
    "kernels.convolution._UNROLLINGS": ((Unrolling(2, 4),), (Unrolling(8, 32),)),
    "kernels.dense._UNROLLINGS": (((2, 2),), ((8, 20),)),
    "kernels.depthwise._COLUMN_ROUNDS": ((1,), (1, 4)),
    "kernels.pool._UNROLLED_TAPS": (5, 50),
    "kernels.add._UNROLLED": (4, 64),
    "kernels.border._UNROLLED_CHUNKS": (1, 16),
    "kernels.to_planes._UNROLLED_PAIRS": (1, 16),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    models = parser.parse_args().models
    board = load_board(BOARD)
    nodes = [core_nodes(prepare(model, board, Options(), Silent()).net).nodes for model in models]
    usual = chosen(nodes)
    print("| constant | value | " + " | ".join(model.stem for model in models) + " |")
    print("|---|---|" + "--:|" * len(models))
    for name, values in TUNED.items():
        for value in values:
            with constant(f"accel.cortex_m.{name}", value):
                found = chosen(nodes)
            cells = map(compared, usual, found)
            print(f"| `{name}` | {value} | " + " | ".join(cells) + " |", flush=True)


def chosen(nodes: Sequence[Sequence[Node]]) -> list[KernelChoice]:
    """The kernels of each network, all of them written anew."""
    modules = [vars(module) for name, module in sys.modules.items() if name.startswith("npukit.accel.cortex_m")]
    for each in {id(value): value for names in modules for value in names.values()}.values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()
    return [choose_thriftily(each) for each in nodes]


def compared(usual: KernelChoice, found: KernelChoice) -> str:
    longer = found.time / usual.time - 1
    return f"{longer:+.1%} ({found.flash - usual.flash:+,}, {found.live_bytes - usual.live_bytes:+,})"


if __name__ == "__main__":
    main()
