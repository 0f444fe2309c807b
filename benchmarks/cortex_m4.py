"""The MLPerf Tiny networks on one Cortex-M4 as whole firmware, beside TensorFlow Lite Micro with CMSIS-NN.

    python benchmarks/cortex_m4.py FOLDER_OF_MODELS [--networks kws ic vww ad]

FOLDER_OF_MODELS holds NAME.tflite and NAME.npz (`in0`, and `out0_tflm`, TensorFlow Lite Micro's outputs). Instructions
are QEMU's, of one frame; cycles the built-in emulator's, where the firmware fits a PE. All outputs must be equal.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

from npukit import api
from npukit.errors import DoesNotFit
from npukit.project.build_folder import Build

BOARD, PE = "mps2-an386", "pe-mesh"


@dataclass(frozen=True)
class Peer:
    """TensorFlow Lite Micro at 90b983c2, CMSIS-NN at 4ab83cc3: instructions of `Invoke()` on the model's first case.

    arm-none-eabi-gcc 12.2, upstream's flags (kernels -O2, core -Os) and default registrations; counted by a plug-in of
    QEMU's, and to 10 instructions the same by SysTick under -icount. `code` is .text and .rodata of a bare-metal image,
    `constants` the FlatBuffer, `ram` arena and stack.
    """

    instructions: int
    code: int
    constants: int
    ram: int


NETWORKS = {
    "kws": ("kws_ref_model", Peer(7_701_741, 91_264 + 12_936, 53_936, 22_820 + 1_540)),
    "ic": ("pretrainedResnet_quant", Peer(29_862_439, 86_080 + 12_680, 98_496, 54_996 + 1_540)),
    "vww": ("vww_96_int8", Peer(24_102_778, 91_264 + 12_936, 333_288, 100_708 + 1_540)),
    "ad": ("ad01_int8", Peer(583_201, 36_640 + 9_552, 276_976, 2_580 + 1_044)),
}

HEADINGS = ("network", "made by", "instructions", "share", "cycles", "code", "constants", "RAM", "outputs")
WIDTHS = (8, 18, 14, 7, 13, 9, 11, 9, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    given = parser.parse_args()
    _print(HEADINGS)
    for network in given.networks:
        name, peer = NETWORKS[network]
        sizes = (f"{size:,}" for size in (peer.code, peer.constants, peer.ram))
        _print((network, "TFLM + CMSIS-NN", f"{peer.instructions:,}", "1", "", *sizes, ""))
        for objective in ("latency", "memory"):
            _print((network, f"npukit, {objective}", *_measured(given.models, name, objective, peer)))


def _measured(models: Path, name: str, objective: str, peer: Peer) -> tuple[str, ...]:
    model = models / f"{name}.tflite"
    with tempfile.TemporaryDirectory() as scratch:
        built = api.build(model, board=BOARD, output=Path(scratch) / "out", options=api.Options(objective=objective))
        found = api.validate(built.folder, inputs=models / f"{name}.npz", expect="out0_tflm")
        instructions = api.bench(built.folder, frames=1).instructions
        cycles = _cycles(model, objective, built, Path(scratch) / "pe")
    (memory,) = built.manifest.summary["memory"]
    sizes = (memory["code"], memory["constants"], memory["activations"] + memory["stack"])
    share = f"{instructions / peer.instructions:.3f}"
    outputs = f"{found.cases} equal" if found.passed else "DIFFER"
    return f"{instructions:,}", share, cycles, *(f"{size:,}" for size in sizes), outputs


def _cycles(model: Path, objective: str, measured: Build, folder: Path) -> str:
    """Of the same kernels on the core of one PE of the mesh, if it has room for them."""
    options = api.Options(engine="cpu", pes=1, objective=objective)
    try:
        built = api.build(model, board=PE, output=folder, options=options)
    except DoesNotFit:
        return "no room"
    if _kernels(built) != _kernels(measured):
        return "no room"
    return f"{api.bench(folder, frames=1).latency_cycles:,}"


def _kernels(built: Build) -> list[str | None]:
    return [op["kernel"] for op in built.manifest.summary["ops"]]


def _print(cells: tuple[str, ...]) -> None:
    words, numbers = cells[:2], cells[2:]
    row = [cell.ljust(width) for cell, width in zip(words, WIDTHS, strict=False)]
    print("".join(row + [cell.rjust(width) for cell, width in zip(numbers, WIDTHS[2:], strict=True)]), flush=True)


if __name__ == "__main__":
    main()
