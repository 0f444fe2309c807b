"""How fast the built-in emulator runs: million instructions a second on code that only computes.

    python benchmarks/emulator_speed.py [--pes 1] [--seconds 2]

An int8 matrix product in plain C, compiled with Zig, on that many PEs at once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.project.image import Image

_SOURCE = """
#include <stdint.h>
enum { SIZE = 64 };
int8_t a[SIZE][SIZE], b[SIZE][SIZE]; /* not static: the compiler must not know that they are zero */
int32_t c[SIZE][SIZE];
static void multiply(void)
{
    for (int y = 0; y < SIZE; y++) {
        for (int x = 0; x < SIZE; x++) {
            int32_t sum = 0;
            for (int k = 0; k < SIZE; k++) {
                sum += a[y][k] * b[x][k];
            }
            c[y][x] += sum;
        }
    }
}
void reset_handler(void)
{
    for (;;) {
        multiply();
        __asm volatile("" ::: "memory");
    }
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    (void *)0x20000,
    (void *)reset_handler,
};
"""
_LINK = """
SECTIONS
{
    . = 0;
    .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) }
    .bss : { *(.data*) *(.bss*) }
    .ARM.exidx : { *(.ARM.exidx*) }
}
"""
_ZIG = (sys.executable, "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m4+vfp4d16sp")
_FLAGS = ("-O2", "-nostdlib", "-fno-unroll-loops", "-fno-vectorize", "-Wl,-e,reset_handler")
_CYCLES_AT_ONCE = 20_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pes", type=int, default=1, help="PEs that compute, 1 to 16")
    parser.add_argument("--seconds", type=float, default=2.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        image = Image(_compiled(Path(folder)), tuple(range(arguments.pes)))
        with Emulator(load_board("pe-mesh"), [image]) as emulator:
            instructions, seconds = _measure(emulator, arguments.pes, arguments.seconds)
    rate = instructions / seconds / 1e6
    print(f"{rate:.0f} million instructions a second ({instructions:,} in {seconds:.2f} s, {arguments.pes} PEs)")


def _compiled(folder: Path) -> Path:
    source, script, elf = folder / "speed.c", folder / "link.ld", folder / "speed.elf"
    source.write_text(_SOURCE)
    script.write_text(_LINK)
    subprocess.run([*_ZIG, *_FLAGS, f"-Wl,-T,{script}", str(source), "-o", str(elf)], check=True)
    return elf


def _measure(emulator: Emulator, pes: int, seconds: float) -> tuple[int, float]:
    """Instructions of all PEs, and the time they took."""
    emulator.run(1_000_000)
    before, start = _instructions(emulator, pes), perf_counter()
    while perf_counter() - start < seconds:
        emulator.run(_CYCLES_AT_ONCE // pes)
    return _instructions(emulator, pes) - before, perf_counter() - start


def _instructions(emulator: Emulator, pes: int) -> int:
    return sum(emulator.counters(pe).instructions for pe in range(pes))


if __name__ == "__main__":
    main()
