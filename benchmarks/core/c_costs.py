"""Cycles of kernels in C on each core beside those of the Cortex-M4 that the predictions start from.

python benchmarks/core/c_costs.py MODEL ... [--cores cortex-m3 rv32imc] [--toolchain zig gcc]

Builds each model for a stock board of the core and measures it on the built-in emulator. The last column is the share
of `c_cycles` in `kit/npukit/board/cores.py` by which the predictions, as they would be with 1, would have been right:
cycles of all layers in C over those predicted, of all models and compilers together. What does not fit is left out.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from npukit import api
from npukit.board.board import Board, known_boards
from npukit.errors import DoesNotFit


def main() -> None:
    arguments = _arguments()
    boards = {board.core.cpu: board for board in reversed([*known_boards()]) if not board.noc}
    for cpu in arguments.cores or [cpu for cpu, board in boards.items() if board.core.type.assembly != "all"]:
        pairs = list(_measured(boards[cpu], arguments.models, arguments.toolchain))
        measured, predicted = (sum(column) for column in zip(*pairs, strict=True))
        print(f"{cpu:14} {measured:12,} cycles {predicted:12,} for a Cortex-M4 {measured / predicted:6.2f}", flush=True)


def _measured(board: Board, models: Sequence[Path], toolchains: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Cycles of each layer in C, and those that `core_cycles` says of it."""
    for model in models:
        for toolchain in toolchains:
            with tempfile.TemporaryDirectory() as folder:
                options = api.Options(toolchain=toolchain)
                try:
                    built = api.build(model, board=board.name, output=Path(folder) / "build", options=options)
                except DoesNotFit as error:
                    print(f"{error.message}; left out")
                    continue
                kernels = {op["name"]: str(op["kernel"]) for op in built.manifest.summary["ops"]}
                for layer in api.bench(built.folder, on="emulator", frames=1).layers:
                    if layer.cycles and kernels.get(layer.name, "").startswith("plain C"):
                        yield layer.cycles, round(layer.predicted_cycles / board.core.type.c_cycles)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cores", nargs="*")
    parser.add_argument("--toolchain", nargs="*", choices=["zig", "gcc"], default=["zig"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
