"""Networks on meshes with other or mixed kinds of PE: are outputs exact and cycles as predicted?

    python benchmarks/mesh/kinds_of_pe.py MODEL ... [--boards NAME ...] [--toolchain zig|gcc]

Builds each model for each of `BOARDS`, validates the build on the built-in emulator, and measures one frame.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from npukit import api
from npukit.data import data_folder
from npukit.errors import DoesNotFit


def _mixed(name: str, difference: str, kind: str, more: str = "") -> str:
    """A board file: pe-mesh with another kind of PE."""
    head = f'like = "pe-mesh"\nname = "{name}"\nsummary = "pe-mesh, but that {difference}"\nruns_on = ["emulator"]\n'
    return f"{head}{more}[[kind]]\n{kind}\n"


_ODD = "pes = [1, 3, 4, 6, 9, 11, 12, 14]\n"
_NO_ARRAY = "pes = [0, 2, 5, 7, 8, 10, 13, 15]\naccelerators = []"
HALF = _mixed("half", "every second PE has no MAC array, the root among them", _NO_ARRAY)
SMALL = _mixed("small", "every second PE has half as much SRAM", f"{_ODD}memory_bytes = 0x1_0000")
M0PLUS = _mixed("m0plus", "all PEs beside the root have a Cortex-M0+", 'pes = [[1, 15]]\ncpu = "cortex-m0plus"')
_EVENTS = "[events]\nbase = 0xE600_0000\n"
BOTH = _mixed("both", "every second PE has a RISC-V core", f'{_ODD}cpu = "rv32imafc"', _EVENTS)

BOARDS = {
    "RISC-V, 1 PE": ("pe-mesh-rv", 1),
    "RISC-V, 16 PEs": ("pe-mesh-rv", 16),
    "half with array": (HALF, 16),
    "half with 64 KB": (SMALL, 16),
    "Cortex-M0+ beside M4F": (M0PLUS, 16),
    "RISC-V beside M4F": (BOTH, 16),
    "spinnaker2, 16 PEs": ("spinnaker2", 16),
    "spinnaker2, all PEs": ("spinnaker2", 148),
}


def main() -> None:
    arguments = _arguments()
    print("| network | PEs | exact | engines' PEs | cycles | predicted | difference |\n|---|---|---|---|---|---|---|")
    for model in arguments.models:
        for name in arguments.boards:
            with tempfile.TemporaryDirectory() as folder:
                print("|", " | ".join((model.stem, name, *_row(name, model, Path(folder), arguments.toolchain))), "|")


def _row(name: str, model: Path, folder: Path, toolchain: str) -> Iterator[str]:
    board, pes = BOARDS[name]
    options = api.Options(pes=pes, toolchain=toolchain)
    try:
        built = api.build(model, board=_board(board, folder), output=folder / "build", options=options)
    except DoesNotFit as error:
        yield error.message
        return
    yield "yes" if api.validate(built.folder).passed else "NO"
    yield ", ".join(_engines(built.manifest.summary["ops"], built))
    measured, predicted = api.bench(built.folder, frames=1).latency_cycles, built.plan().predicted.latency_cycles
    assert measured is not None
    yield from (f"{measured:,}", f"{predicted:,}", f"{measured / predicted - 1:+.1%}")


def _engines(ops: list[dict[str, str]], built: api.Build) -> Iterator[str]:
    """Each engine with the number of PEs that use it."""
    engine_of = {op["name"]: op["engine"] for op in ops}
    pes: dict[str, set[int]] = {}
    for pe in built.plan().pes:
        for step in pe.computes():
            pes.setdefault(engine_of[step.op], set()).add(pe.pe)
    yield from (f"{engine} {len(used)}" for engine, used in sorted(pes.items()))


def _board(board: str, folder: Path) -> str:
    """A board's name as it is, or the path of a new file with the given text."""
    if "\n" not in board:
        return board
    shutil.copy(data_folder("boards") / "pe-mesh.toml", folder)
    (folder / "board.toml").write_text(board)
    return str(folder / "board.toml")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--boards", nargs="*", choices=list(BOARDS), default=list(BOARDS))
    parser.add_argument("--toolchain", choices=["zig", "gcc"], default="zig")
    return parser.parse_args()


if __name__ == "__main__":
    main()
