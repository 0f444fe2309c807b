"""Cycles of kernels in C on each core, beside the Cortex-M4's cycles on which the predictions are based.

    python benchmarks/core/c_costs.py MODEL ... [--cores cortex-m3 rv32imc] [--toolchain zig gcc]

Builds each model for a stock board of the core and measures the build on the built-in emulator. The last column is the
value of `c_cycles` or `c_kinds` in `kit/npukit/board/cores.py` with which the predictions would be right: measured over
predicted cycles of all layers in C. The first row of a core sums all models and compilers, and each further row sums
one kind of layer. Models that do not fit are left out.
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
        found = list(_measured(boards[cpu], arguments.models, arguments.toolchain))
        for kind in (None, *sorted({kind for kind, _, _ in found})):
            of_kind = [cycles for other, *cycles in found if kind in (None, other)]
            measured, predicted = (sum(column) for column in zip(*of_kind, strict=True))
            what = f"{cpu:14} {kind or 'all layers':18}"
            print(
                f"{what} {measured:12,} cycles {predicted:12,} for a Cortex-M4 {measured / predicted:6.2f}", flush=True
            )


def _measured(board: Board, models: Sequence[Path], toolchains: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """The kind of each layer in C, its cycles, and its cycles as predicted for a Cortex-M4."""
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
                kinds = {op["name"]: str(op["op"]) for op in built.manifest.summary["ops"]}
                for layer in api.bench(built.folder, on="emulator", frames=1).layers:
                    if layer.cycles and kernels.get(layer.name, "").startswith("plain C"):
                        kind = kinds[layer.name]
                        yield kind, layer.cycles, round(layer.predicted_cycles / board.core.type.c_factor(kind))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cores", nargs="*")
    parser.add_argument("--toolchain", nargs="*", choices=["zig", "gcc"], default=["zig"])
    return parser.parse_args()


if __name__ == "__main__":
    main()
