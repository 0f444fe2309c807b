"""Instructions of whole networks counted twice: by QEMU under -icount, and by the built-in emulator.

    python benchmarks/core/against_qemu.py FOLDER_OF_MODELS [--networks ad kws]

Both run the same kernels: QEMU on a stock mps2-an386, the emulator on a board with room for any network
(one-core.toml). QEMU's clock ticks once in 40 instructions. The few instructions of a frame outside the kernels differ
from board to board.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from cortex_m4 import BOARD, NETWORKS, one_core

from npukit import api


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=["ad", "kws"])
    given = parser.parse_args()
    for network in given.networks:
        with tempfile.TemporaryDirectory() as scratch:
            name, _ = NETWORKS[network]
            qemu, emulator = (
                counted(given.models / f"{name}.tflite", board, Path(scratch) / str(index))
                for index, board in enumerate((BOARD, one_core(Path(scratch))))
            )
        apart = f"{qemu - emulator:+,} ({qemu / emulator - 1:+.4%})"
        print(f"{network}: QEMU {qemu:,} instructions, emulator {emulator:,}: {apart}", flush=True)


def counted(model: Path, board: str, folder: Path) -> int:
    built = api.build(model, board=board, output=folder, options=api.Options(engine="cpu"))
    return api.bench(built.folder, frames=1).instructions or 0


if __name__ == "__main__":
    main()
