"""A network under TensorFlow Lite Micro on a Cortex-M4: cycles by the built-in emulator's model of the core.

    python benchmarks/core/tflite_micro.py CLONE MODEL.tflite

CLONE: a clone of tflite-micro, in which its own Makefile has made the library with CMSIS-NN:

    make -f tensorflow/lite/micro/tools/make/Makefile microlite TARGET=cortex_m_generic \\
        TARGET_ARCH=cortex-m4+fp OPTIMIZED_KERNEL_DIR=cmsis_nn

The program is `tflite_micro.cc`, on the memories and devices of the AN386. Cycles are those of the interpreter's ops.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.errors import NpukitError
from npukit.project.images.image import Image

HERE = Path(__file__).parent
BOARD, SECONDS, CYCLES_BYTES = "mps2-an386", 60, 4
MADE = "gen/cortex_m_generic_cortex-m4+fp_default_cmsis_nn_gcc/lib/libtensorflow-microlite.a"
DOWNLOADS = "tensorflow/lite/micro/tools/make/downloads"
FLAGS = (
    *("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", "-std=c++17", "-O2", "-fno-exceptions"),
    *("-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit", "-ffunction-sections", "-fdata-sections"),
    *("-funsigned-char", "-DTF_LITE_STATIC_MEMORY", "-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections"),
)


def run(clone: Path, model: Path, inputs: Sequence[np.ndarray], outputs: int) -> tuple[int, bytes]:
    """The cycles of a network's ops, and the `outputs` bytes of its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        elf = _linked(clone, model, b"".join(each.tobytes() for each in inputs), Path(folder))
        board = load_board(BOARD)
        with Emulator(board, [Image(elf, (board.root_pe,))]) as emulator:
            found = b""
            while len(found) < CYCLES_BYTES + outputs and (more := emulator.read(SECONDS)):
                found += more
    cycles = int.from_bytes(found[:CYCLES_BYTES], "little")
    if not cycles:
        raise NpukitError("TensorFlow Lite Micro does not take the network")
    return cycles, found[CYCLES_BYTES:]


def _linked(clone: Path, model: Path, inputs: bytes, folder: Path) -> Path:
    """The program with a network and its inputs."""
    (folder / "inputs").write_bytes(inputs)
    parts = {"network": model, "inputs": folder / "inputs"}
    data = "".join(f'.balign 16\n.global {name}\n{name}: .incbin "{file}"\n' for name, file in parts.items())
    (folder / "data.s").write_text(f".section .rodata\n{data}")
    elf = folder / "network.elf"
    script = f"-Wl,-T,{HERE / 'tflite_micro.ld'}"
    command = ("arm-none-eabi-g++", *FLAGS, folder / "data.s", _program(clone), clone / MADE, "-lm", script, "-o", elf)
    subprocess.run(command, check=True)
    return elf


@cache
def _program(clone: Path) -> Path:
    """The program without a network, compiled once."""
    downloads, compiled = clone / DOWNLOADS, clone / "gen" / "tflite_micro.o"
    includes = (clone, *(downloads / each for each in ("flatbuffers/include", "gemmlowp", "ruy")))
    command = ("arm-none-eabi-g++", *FLAGS, *(f"-I{each}" for each in includes), "-c", HERE / "tflite_micro.cc")
    subprocess.run((*command, "-o", compiled), check=True)
    return compiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("model", type=Path)
    given = parser.parse_args()
    print(f"{run(given.clone, given.model.absolute(), [np.zeros(1 << 20, np.int8)], 0)[0]:,} cycles")


if __name__ == "__main__":
    main()
