"""CoreMark per MHz by the built-in emulator's cycles, beside the figure of the core's designer.

    python benchmarks/core/coremark.py FOLDER

FOLDER holds images of EEMBC's CoreMark for each core's board: CORE-1.elf runs one iteration, CORE-3.elf three. Each
then sends a byte through the board's UART. The score comes from the difference, the cycles of two iterations.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from npukit.board.board import Board, load_board
from npukit.emulator.builtin import Emulator
from npukit.project.images.image import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.core.cores import PEERS

PUBLISHED = {"cortex-m0plus": 2.46, "cortex-m3": 3.34, "cortex-m4f": 3.42, "cortex-m7": 5.01}
"""CoreMark per MHz as published by Arm, with Arm's compilers."""
BOARDS = {"cortex-m3": "mps2-an385"}
SECONDS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path)
    given = parser.parse_args()
    print("| core | by the model | published | difference |\n|---|--:|--:|--:|")
    for core, published in PUBLISHED.items():
        one, three = (_cycles(core, given.images / f"{core}-{count}.elf") for count in (1, 3))
        found = 2e6 / (three - one)
        title = _board(core).core.type.title
        print(f"| {title} | {found:.2f} | {published:.2f} | {found / published - 1:+.0%} |", flush=True)


def _board(core: str) -> Board:
    return load_board(BOARDS[core] if core in BOARDS else PEERS[core].board)


def _cycles(core: str, elf: Path) -> int:
    board = _board(core)
    with Emulator(board, [Image(elf, (board.root_pe,))]) as emulator:
        if not emulator.read(SECONDS):
            raise SystemExit(f"{elf} has sent nothing")
        counted = emulator.counters(board.root_pe)
        return counted.cycles - counted.asleep


if __name__ == "__main__":
    main()
