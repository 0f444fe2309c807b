"""Digits and the MLPerf Tiny networks on one core of each kind, beside TensorFlow Lite Micro's instructions on it.

    python benchmarks/core/cores.py FOLDER_OF_MODELS [--cores cortex-m0plus rv32imc] [--networks kws ic] [--save STEM]

FOLDER_OF_MODELS holds NAME.tflite and NAME.npz (`in0`, and `out0_tflm`, TensorFlow Lite Micro's outputs). Instructions
are counted over one frame under QEMU -icount, in firmware built by GCC for the core's stock board. Code for a
Cortex-M0+ runs on the AN385 with its Cortex-M3, because no QEMU machine with a Cortex-M0+ has enough memory. The same
firmware is validated on the built-in emulator. `--save` writes the table as STEM.md and STEM.json and keeps rows of an
earlier table that are not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.state import DIGITS as DIGITS_FILE
from benchmarks.state import commit

from npukit import api
from npukit.board.board import load_board

CASES = 3
MODELS = {"kws": "kws_ref_model", "ic": "pretrainedResnet_quant", "vww": "vww_96_int8", "ad": "ad01_int8"}
DIGITS = "digits"
NETWORKS = (*MODELS, DIGITS)
HEAD = (
    "| core | network | TFLM | npukit | ratio | goal | equal on QEMU | on the built-in emulator | at |",
    "|---|---|--:|--:|--:|--:|---|---|---|",
)
ABOUT = """# Digits and the MLPerf Tiny networks on each core

By `python benchmarks/core/cores.py FOLDER_OF_MODELS --save benchmarks/core/cores`, which says how
each figure was counted. Instructions of one inference: of TensorFlow Lite Micro with CMSIS-NN on
Arm's cores and with its reference kernels on RISC-V, and of npukit's firmware. *Equal*: cases with
equal outputs (of digits, equal to the integer reference). The built-in emulator has no vectors.
"""


@dataclass(frozen=True)
class Peer:
    """TensorFlow Lite Micro at 90b983c2 on a core: instructions of `Invoke()` on each model's first case.

    With CMSIS-NN at 4ab83cc3 on Arm's cores, Helium's kernels on the Cortex-M55; on RISC-V with its reference kernels,
    the only ones for RISC-V. GCC 12.2, upstream's flags for the core, kernels -O2. On RISC-V -O3 takes a fifth to 36 %
    more instructions, and the same number for `ad`. Counted by SysTick or `minstret` under QEMU -icount; all outputs
    equalled the model's .npz file.
    """

    board: str
    goal: float | None = None
    instructions: Mapping[str, int] = field(default_factory=dict)
    """By network. Empty for a core without counts."""


def _peer(board: str, goal: float, *instructions: int) -> Peer:
    return Peer(board, goal, dict(zip(MODELS, instructions, strict=True)))


PEERS = {
    "cortex-m0plus": _peer(
        str(Path(__file__).with_name("an385-m0plus.toml")), 0.6, 29_014_880, 97_554_920, 86_889_400, 1_762_800
    ),
    "cortex-m3": Peer("mps2-an385"),
    "cortex-m4f": _peer("mps2-an386", 0.5, 7_701_400, 29_862_000, 24_101_960, 582_920),
    "cortex-m7": _peer("mps2-an500", 0.3, 7_647_240, 30_017_640, 24_025_600, 583_240),
    "cortex-m33": _peer("mps2-an505", 0.3, 7_683_700, 29_961_150, 24_046_800, 583_350),
    "cortex-m55": _peer("mps3-an547", 0.8, 1_818_031, 4_914_188, 6_558_781, 285_562),
    "rv32imc": _peer("riscv-virt", 0.5, 45_574_514, 126_908_441, 114_004_838, 2_509_940),
    "rv32imafc": Peer("riscv-virt-f"),
    "rv32imc-zve32x": _peer("riscv-virt-v", 0.5, 45_574_514, 126_908_441, 114_004_838, 2_509_940),
}


@dataclass(frozen=True)
class Row:
    core: str
    network: str
    instructions: int
    qemu: int
    """Equal cases."""
    emulator: int | None
    commit: str

    def __str__(self) -> str:
        title, goal = load_board(PEERS[self.core].board).core.type.title, PEERS[self.core].goal
        peer = PEERS[self.core].instructions.get(self.network)
        ratio = f"{self.instructions / peer:.3f}" if peer else ""
        cells = [title, self.network, f"{peer:,}" if peer else "", f"{self.instructions:,}", ratio]
        equal = [f"{cases} of {CASES}" if cases is not None else "" for cases in (self.qemu, self.emulator)]
        return f"| {' | '.join([*cells, str(goal) if ratio else '', *equal, self.commit])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--cores", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    found = _saved(given.save)
    print(*HEAD, sep="\n")
    for row in _rows(given.models, given.cores, given.networks, commit()):
        print(row, flush=True)
        found[row.core, row.network] = row
        if given.save:
            rows = [asdict(found[key]) for key in product(PEERS, NETWORKS) if key in found]
            given.save.with_suffix(".md").write_text(page(rows))
            given.save.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")


def _saved(stem: Path | None) -> dict[tuple[str, str], Row]:
    """The rows of a saved table, by core and network."""
    if stem is None or not stem.with_suffix(".json").exists():
        return {}
    rows = (Row(**row) for row in json.loads(stem.with_suffix(".json").read_text()))
    return {(row.core, row.network): row for row in rows}


def page(rows: Iterable[Mapping[str, Any]]) -> str:
    """The table as a Markdown page."""
    return "\n".join([ABOUT, *HEAD, *(str(Row(**row)) for row in rows), ""])


def _rows(models: Path, cores: Sequence[str], networks: Sequence[str], commit: str) -> Iterator[Row]:
    for core, network in product(cores, networks):
        model = DIGITS_FILE if network == DIGITS else models / f"{MODELS[network]}.tflite"
        with tempfile.TemporaryDirectory() as scratch:
            options = api.Options(engine="cpu", toolchain="gcc")
            built = api.build(model, board=PEERS[core].board, output=Path(scratch) / "out", options=options)
            instructions = api.bench(built.folder, on="qemu", frames=1).instructions or 0
            emulated = _equal(built, model, network, "emulator") if "emulator" in built.board.runs_on else None
            yield Row(core, network, instructions, _equal(built, model, network, "qemu"), emulated, commit)


def _equal(built: api.Build, model: Path, network: str, on: str) -> int:
    """The number of cases compared if all outputs are as expected; 0 if one differs."""
    given = {} if network == DIGITS else {"inputs": model.with_suffix(".npz"), "expect": "out0_tflm"}
    found = api.validate(built.folder, cases=CASES, on=on, **given)
    return found.cases if found.passed else 0


if __name__ == "__main__":
    main()
