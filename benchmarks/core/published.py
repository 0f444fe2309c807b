"""ST's MLPerf Tiny results on a NUCLEO-L4R5ZI beside npukit's cycles on that board: a built-in emulator, no silicon.

    python benchmarks/core/published.py FOLDER_OF_MODELS [--networks kws ad]

ST's cycles are 120 MHz over the throughput submitted by ST, with ST's own kernels (`benchmarks/core/cortex_m4.py`);
their RAM and flash are not published. npukit's cycles are measured on three boards: the AN386, which has the same core
and no wait states; the board, with its flash's wait states and constants copied to SRAM where the copy gains; and the
same board with as much RAM as TensorFlow Lite Micro takes for the network, in whole KB, and `LEAST` at least.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from npukit import api
from npukit.board.board import load_board
from npukit.errors import DoesNotFit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.core.cortex_m4 import NETWORKS

BOARD, WITHOUT_WAITS, KB = "nucleo-l4r5zi", "mps2-an386", 1024
LEAST = 8
"""Least KB of RAM. Before linking, 3 KB are reserved for a program's stack."""

HEAD = ("network", "on", "ST's, on silicon", "npukit", "predicted", "difference", "ST's over npukit's", "RAM", "flash")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    given = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|---|---{'|--:' * (len(HEAD) - 2)}|")
    with tempfile.TemporaryDirectory() as folder:
        for network in given.networks:
            name, peer = NETWORKS[network]
            room = max(-(-peer.ram // KB), LEAST)
            boards = {"the AN386": WITHOUT_WAITS, "the board": BOARD, f"{room} KB of RAM": _cut(Path(folder), room)}
            for title, board in boards.items():
                cells = _measured(given.models / f"{name}.tflite", board, peer.st_cycles)
                print(f"| {' | '.join((network, title, f'{peer.st_cycles:,}', *cells))} |", flush=True)


def _cut(folder: Path, kilobytes: int) -> str:
    """The path of a board file with RAM of `kilobytes` KB."""
    flash, ram = load_board(BOARD).memory
    assert flash.waits
    waits = ", ".join(f"{key} = {value}" for key, value in flash.waits.model_dump().items())
    tables = (
        f'[[memory]]\nname = "{each.name}"\norigin = {each.origin}\nsize = {size}\nholds = {list(each.holds)}\n{more}\n'
        for each, size, more in ((flash, flash.size, f"waits = {{ {waits} }}"), (ram, kilobytes * KB, ""))
    )
    path = folder / f"with-{kilobytes}-kb.toml"
    path.write_text(f'like = "{BOARD}"\nname = "{path.stem}"\nsummary = "less RAM"\n\n' + "\n".join(tables))
    return str(path)


def _measured(model: Path, board: str, st_cycles: int) -> tuple[str, ...]:
    """Measured and predicted cycles of a validated frame, ratios, RAM and flash; or "does not fit"."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = api.build(model, board=board, output=Path(folder) / "build", options=api.Options(engine="cpu"))
        except DoesNotFit:
            return ("does not fit", *[""] * 5)
        if not api.validate(built.folder, on="emulator", cases=1).passed:
            raise SystemExit(f"{model.stem} computes something else on {board}")
        taken = api.bench(built.folder, on="emulator", frames=1).latency_cycles
        assert taken is not None
        predicted, (flash, ram) = built.plan().predicted.latency_cycles, built.manifest.summary["regions"]
        ratios = f"{taken / predicted - 1:+.1%}", f"{st_cycles / taken:.2f}"
        return f"{taken:,}", f"{predicted:,}", *ratios, f"{ram['used']:,}", f"{flash['used']:,}"


if __name__ == "__main__":
    main()
