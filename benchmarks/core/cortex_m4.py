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
import platform
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from npukit import __version__, api
from npukit.data import data_folder
from npukit.project.images.elf import Elf
from npukit.project.toolchain import find_toolchain

BOARD, ONE_CORE = "mps2-an386", Path(__file__).with_name("one-core.toml")
CHOICES = (("latency", "gcc"), ("latency", "zig"), ("memory", "gcc"))
COUNTS = ("instructions", "ratio", "cycles", "modelled", "ST's cycles", "RAM", ".text", "code", "constants", "outputs")
HEADINGS = ("network", "made by", *COUNTS)


@dataclass(frozen=True)
class Peer:
    """TensorFlow Lite Micro at 90b983c2, CMSIS-NN at 4ab83cc3: instructions of `Invoke()` on the model's first case.

    arm-none-eabi-gcc 12.2, upstream's flags (kernels -O2, core -Os) and default registrations. Counted by a QEMU
    plug-in; SysTick under -icount agrees to 10 instructions. `text` and `rodata` are the sections of a bare-metal image
    after --gc-sections without the model: interpreter, kernels, newlib-nano, start-up, a small harness. `constants` is
    the FlatBuffer, `ram` arena and stack. `st_cycles` are 120 MHz over the throughput that ST published for X-CUBE-AI
    on a NUCLEO-L4R5ZI (MLPerf Tiny 1.2): on silicon, with the flash's wait states.
    """

    instructions: int
    text: int
    rodata: int
    constants: int
    ram: int
    st_cycles: int

    @property
    def code(self) -> int:
        return self.text + self.rodata


NETWORKS = {
    "kws": ("kws_ref_model", Peer(7_701_741, 91_264, 12_936, 53_936, 22_820 + 1_540, 5_180_000)),
    "ic": ("pretrainedResnet_quant", Peer(29_862_439, 86_080, 12_680, 98_496, 54_996 + 1_540, 19_800_000)),
    "vww": ("vww_96_int8", Peer(24_102_778, 91_264, 12_936, 333_288, 100_708 + 1_540, 10_670_000)),
    "ad": ("ad01_int8", Peer(583_201, 36_640, 9_552, 276_976, 2_580 + 1_044, 631_000)),
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
    text: int
    code: int
    constants: int
    cases_equal: int
    cases: int


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from state import commit

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--save", type=Path)
    given = parser.parse_args()
    rows, tools = [], _tools()
    print(*_HEAD, sep="\n")
    for row in _measurements(given.models, given.networks, given.cases):
        print(_line(row), flush=True)
        rows.append(row)
    found = {"commit": commit(), "tools": tools, "rows": [asdict(row) for row in rows]}
    print(f"\n{_note(found)}")
    if given.save:
        given.save.with_suffix(".md").write_text(page(found))
        given.save.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n")


def page(found: Mapping[str, Any]) -> str:
    """The table as a Markdown page."""
    rows = [Row(**row) for row in found["rows"]]
    lines = [*_HEAD]
    for network in dict.fromkeys(row.network for row in rows):
        lines += [_peer_line(network), *(_line(row) for row in rows if row.network == network)]
    title = "# The MLPerf Tiny networks on one Cortex-M4"
    return "\n".join([title, "", *_explanation(), "", *lines, "", _note(found), ""])


def _note(found: Mapping[str, Any]) -> str:
    tools = ", ".join(f"{name} {version}" for name, version in found["tools"].items())
    note = f"Measured at {found['commit']} by `python benchmarks/core/cortex_m4.py`, with {tools}."
    return textwrap.fill(note, 100, break_on_hyphens=False)


def _explanation() -> list[str]:
    return [
        "Made by `python benchmarks/core/cortex_m4.py FOLDER_OF_MODELS --save benchmarks/core/cortex_m4`,",
        "which says how each figure was counted. The ratio is that of instructions to TensorFlow Lite",
        "Micro's. Sizes are bytes; RAM is activations and stack. Cycles are those of models of the core",
        "without wait states, not of silicon: `cycles` the emulator's, `modelled` those the generator",
        "foresaw. `.text` is that section of the image: kernels, start-up, the host's protocol; of theirs",
        "interpreter, kernels, library, start-up. `code` is that and .rodata, of ours also vectors and",
        "variables; the network's constants are not in it.",
    ]


_HEAD = (f"| {' | '.join(HEADINGS)} |", "|---|---" + "|--:" * len(COUNTS) + "|")


def _measurements(models: Path, networks: list[str], cases: int) -> Iterator[Row]:
    for network in networks:
        name, _ = NETWORKS[network]
        for objective, compiler in CHOICES:
            yield _measured(models / f"{name}.tflite", (network, objective, compiler), cases)


def _peer_line(network: str) -> str:
    _, peer = NETWORKS[network]
    sizes = " | ".join(f"{size:,}" for size in (peer.ram, peer.text, peer.code, peer.constants))
    return f"| {network} | TFLM + CMSIS-NN | {peer.instructions:,} | 1 | | | {peer.st_cycles:,} | {sizes} | |"


def _line(row: Row) -> str:
    cells = [row.network, f"npukit, {row.objective}, {row.compiler}", f"{row.instructions:,}", f"{row.ratio:.4f}"]
    cells += [f"{row.cycles:,}" if row.cycles else "", f"{row.modelled_cycles:,}", ""]
    cells += [f"{size:,}" for size in (row.ram, row.text, row.code, row.constants)]
    cells.append(f"{row.cases_equal} of {row.cases} equal" if row.cases_equal == row.cases else "DIFFER")
    return f"| {' | '.join(cells)} |"


def _measured(model: Path, which: tuple[str, str, str], cases: int) -> Row:
    network, objective, compiler = which
    with tempfile.TemporaryDirectory() as scratch:
        options = api.Options(engine="cpu", objective=objective, toolchain=compiler)
        built = api.build(model, board=BOARD, output=Path(scratch) / "out", options=options)
        found = api.validate(built.folder, inputs=model.with_suffix(".npz"), expect="out0_tflm", cases=cases)
        instructions = api.bench(built.folder, frames=1).instructions or 0
        (image,) = built.images()
        text = Elf(image.elf).sections[".text"].size
        cycles = _cycles(model, options, Path(scratch)) if compiler == "gcc" else None
    (memory,) = built.manifest.summary["memory"]
    return Row(
        *which,
        instructions=instructions,
        ratio=round(instructions / NETWORKS[network][1].instructions, 4),
        cycles=cycles,
        modelled_cycles=built.manifest.summary["predicted"]["latency_cycles"],
        ram=memory["activations"] + memory["stack"],
        text=text,
        code=memory["code"],
        constants=memory["constants"],
        cases_equal=found.cases if found.passed else 0,
        cases=found.cases,
    )


def _cycles(model: Path, options: api.Options, scratch: Path) -> int | None:
    """Cycles of the same kernels by the built-in emulator's model of the core."""
    built = api.build(model, board=one_core(scratch), output=scratch / "one-core", options=options)
    return api.bench(built.folder, frames=1).latency_cycles


def one_core(scratch: Path) -> str:
    """The path of a copy of one-core.toml, beside a copy of pe-mesh.toml on which it is based."""
    for source in (data_folder("boards") / "pe-mesh.toml", ONE_CORE):
        shutil.copy(source, scratch)
    return str(scratch / ONE_CORE.name)


def _tools() -> dict[str, str]:
    qemu = subprocess.run(["qemu-system-arm", "--version"], capture_output=True, text=True, check=True).stdout.split()
    compilers = {name: find_toolchain(name).version for name in ("gcc", "zig")}
    return {"npukit": __version__, "Python": platform.python_version(), "QEMU": qemu[3], **compilers}


if __name__ == "__main__":
    main()
