"""The MLPerf Tiny networks on one Cortex-M4 as whole firmware, beside TensorFlow Lite Micro with CMSIS-NN and ST.

    python benchmarks/core/cortex_m4.py FOLDER_OF_MODELS [--networks kws ic vww ad] [--cases 3] [--save STEM]

FOLDER_OF_MODELS holds NAME.tflite and NAME.npz (`in0`, and `out0_tflm`, TensorFlow Lite Micro's outputs). Instructions
are counted over one frame on the mps2-an386 under QEMU -icount. Cycles come from the built-in emulator's model of the
core, which runs the same kernels on a board with room for any network (one-core.toml). All outputs must be equal.
`--save` writes the table as STEM.md and STEM.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.state import commit

from npukit import api
from npukit.data import data_folder

BOARD, ONE_CORE = "mps2-an386", Path(__file__).with_name("one-core.toml")
CHOICES = (("latency", "gcc"), ("latency", "zig"), ("memory", "gcc"))
HEADINGS = (
    *("network", "made by", "instructions", "ratio", "cycles", "modelled", "ST's cycles", "RAM", "code", "constants"),
    "outputs",
)
HEAD = (f"| {' | '.join(HEADINGS)} |", f"|---|---{'|--:' * (len(HEADINGS) - 2)}|")
ABOUT = """# The MLPerf Tiny networks on one Cortex-M4

Measured at {commit} by `python benchmarks/core/cortex_m4.py FOLDER_OF_MODELS --save STEM`, which
says how each figure was counted. The ratio is of instructions to TensorFlow Lite Micro's. Sizes are
bytes; RAM is activations and stack; `code` includes .rodata but not the network's constants. Cycles
are without wait states: `cycles` the emulator's, `modelled` those of the planner, ST's of silicon.
"""


@dataclass(frozen=True)
class Peer:
    """TensorFlow Lite Micro at 90b983c2, CMSIS-NN at 4ab83cc3: instructions of `Invoke()` on the model's first case.

    arm-none-eabi-gcc 12.2, upstream's flags (kernels -O2, core -Os) and default registrations. Counted by a QEMU
    plug-in; SysTick under -icount agrees to 10 instructions. `code`: .text and .rodata of a bare-metal image after
    --gc-sections without the model: interpreter, kernels, newlib-nano, start-up, a small harness. `constants` is the
    FlatBuffer, `ram` arena and stack. `st_cycles` are 120 MHz over the throughput that ST published for X-CUBE-AI on a
    NUCLEO-L4R5ZI (MLPerf Tiny 1.2): on silicon, with the flash's wait states.
    """

    instructions: int
    code: int
    constants: int
    ram: int
    st_cycles: int

    def row(self, network: str) -> str:
        sizes = f"{self.ram:,} | {self.code:,} | {self.constants:,}"
        return f"| {network} | TFLM + CMSIS-NN | {self.instructions:,} | 1 | | | {self.st_cycles:,} | {sizes} | |"


NETWORKS = {
    "kws": ("kws_ref_model", Peer(7_701_741, 91_264 + 12_936, 53_936, 22_820 + 1_540, 5_180_000)),
    "ic": ("pretrainedResnet_quant", Peer(29_862_439, 86_080 + 12_680, 98_496, 54_996 + 1_540, 19_800_000)),
    "vww": ("vww_96_int8", Peer(24_102_778, 91_264 + 12_936, 333_288, 100_708 + 1_540, 10_670_000)),
    "ad": ("ad01_int8", Peer(583_201, 36_640 + 9_552, 276_976, 2_580 + 1_044, 631_000)),
}


@dataclass(frozen=True)
class Row:
    """One build. `cycles` is None for a compiler other than gcc: cycles are counted for gcc alone."""

    network: str
    objective: str
    compiler: str
    instructions: int
    ratio: float
    cycles: int | None
    modelled_cycles: int
    ram: int
    code: int
    constants: int
    cases_equal: int
    cases: int

    def __str__(self) -> str:
        made = f"{self.network} | npukit, {self.objective}, {self.compiler} | {self.instructions:,} | {self.ratio:.4f}"
        cycles = f"{f'{self.cycles:,}' if self.cycles else ''} | {self.modelled_cycles:,} | "
        sizes = f"{self.ram:,} | {self.code:,} | {self.constants:,}"
        equal = f"{self.cases_equal} of {self.cases} equal" if self.cases_equal == self.cases else "DIFFER"
        return f"| {made} | {cycles} | {sizes} | {equal} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    rows = []
    print(*HEAD, sep="\n")
    for network in given.networks:
        for choice in CHOICES:
            rows.append(measured(given.models / f"{NETWORKS[network][0]}.tflite", (network, *choice), given.cases))
            print(rows[-1], flush=True)
    found = {"commit": commit(), "rows": [asdict(row) for row in rows]}
    if given.save:
        given.save.with_suffix(".md").write_text(page(found))
        given.save.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")


def page(found: Mapping[str, Any]) -> str:
    """The table as a Markdown page."""
    rows, lines = [Row(**row) for row in found["rows"]], [ABOUT.format(commit=found["commit"]), *HEAD]
    for network in dict.fromkeys(row.network for row in rows):
        lines += [NETWORKS[network][1].row(network), *(str(row) for row in rows if row.network == network)]
    return "\n".join([*lines, ""])


def measured(model: Path, which: tuple[str, str, str], cases: int) -> Row:
    network, objective, compiler = which
    with tempfile.TemporaryDirectory() as scratch:
        options = api.Options(engine="cpu", objective=objective, toolchain=compiler)
        built = api.build(model, board=BOARD, output=Path(scratch) / "out", options=options)
        found = api.validate(built.folder, inputs=model.with_suffix(".npz"), expect="out0_tflm", cases=cases)
        instructions = api.bench(built.folder, frames=1).instructions or 0
        cycles = _cycles(model, options, Path(scratch)) if compiler == "gcc" else None
    (memory,) = built.manifest.summary["memory"]
    return Row(
        *which,
        instructions=instructions,
        ratio=round(instructions / NETWORKS[network][1].instructions, 4),
        cycles=cycles,
        modelled_cycles=built.manifest.summary["predicted"]["latency_cycles"],
        ram=memory["activations"] + memory["stack"],
        code=memory["code"],
        constants=memory["constants"],
        cases_equal=found.cases if found.passed else 0,
        cases=found.cases,
    )


def _cycles(model: Path, options: api.Options, scratch: Path) -> int | None:
    """Cycles of the same kernels by the built-in emulator's model of the core."""
    for source in (data_folder("boards") / "pe-mesh.toml", ONE_CORE):
        shutil.copy(source, scratch)
    built = api.build(model, board=str(scratch / ONE_CORE.name), output=scratch / "one-core", options=options)
    return api.bench(built.folder, frames=1).latency_cycles


if __name__ == "__main__":
    main()
