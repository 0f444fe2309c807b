"""Speed of the built-in emulator, beside its goals.

    python benchmarks/emulator_speed.py [--only one strict mesh chip board]

The load is an endless int8 matrix product in plain C, compiled with Zig: on one PE, on 16, on all 152 of a chip.
`board` constructs and starts a board of 7296 PEs. On a busy machine, use the rate per CPU time of the worker's process.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kit"))

from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from npukit.measure.target import Emulation
from npukit.project.images.image import Image

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
static void fill(void) /* what SRAM holds at power-on is nobody's to read */
{
    for (int y = 0; y < SIZE; y++) {
        for (int x = 0; x < SIZE; x++) {
            a[y][x] = (int8_t)x;
            b[y][x] = (int8_t)y;
            c[y][x] = 0;
        }
    }
}
void reset_handler(void)
{
    fill();
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
_INSTRUCTIONS_OF_A_CHIP = 5_000_000
_SECONDS = 3.0
_CYCLES_AT_ONCE = 20_000_000
_PLAIN = Emulation()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    arguments = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        elf = _compiled(Path(folder))
        for name in arguments.only:
            MEASURES[name](elf)


def _compiled(folder: Path) -> Path:
    source, script, elf = folder / "speed.c", folder / "link.ld", folder / "speed.elf"
    source.write_text(_SOURCE)
    script.write_text(_LINK)
    subprocess.run([*_ZIG, *_FLAGS, f"-Wl,-T,{script}", str(source), "-o", str(elf)], check=True)
    return elf


def strict(elf: Path) -> None:
    """The rate with every load and store checked, as in `npukit validate` and gdb."""
    for races in (False, True):
        _rate(elf, "pe-mesh", 1, "none", Emulation(strict=True, races=races))


def _rate(elf: Path, board: str, pes: int, goal: str, how: Emulation = _PLAIN) -> None:
    images = [Image(elf, tuple(range(pes)))]
    with Emulator(load_board(board), images, strict=how.strict, races=how.races) as emulator:
        emulator.run(1_000_000)
        before, cpu, start = _instructions(emulator, pes), _usage(emulator)[0], perf_counter()
        while perf_counter() - start < _SECONDS:
            emulator.run(_CYCLES_AT_ONCE // pes)
        done, seconds = _instructions(emulator, pes) - before, perf_counter() - start
        used = _usage(emulator)[0] - cpu
    rates = f"{done / seconds / 1e6:.0f} million instructions a second, {done / used / 1e6:.0f} of CPU time"
    what = f"{pes} PE{'s' if pes > 1 else ''} of {board}{_in_words(how)}"
    print(f"{what}: {rates} (goal: {goal})")


def _in_words(how: Emulation) -> str:
    return ", strict" * how.strict + ", races not looked for" * (not how.races)


def chip(elf: Path) -> None:
    pes = load_board("pe-mesh-152").pe_count
    start = perf_counter()
    with Emulator(load_board("pe-mesh-152"), [Image(elf, tuple(range(pes)))]) as emulator:
        made = perf_counter() - start
        while emulator.counters(0).instructions < _INSTRUCTIONS_OF_A_CHIP:
            emulator.run(_CYCLES_AT_ONCE // pes)
        seconds, used, done = perf_counter() - start, _usage(emulator)[0], _instructions(emulator, pes)
    each = f"{done / pes / 1e6:.1f} million instructions each"
    print(f"{pes} PEs, {each}: {seconds:.1f} s, made in {made:.1f} s of it; {used:.1f} s of CPU time (goal: 15 s)")


def board(elf: Path) -> None:
    pes = load_board("pe-mesh-7296").pe_count
    start = perf_counter()
    with Emulator(load_board("pe-mesh-7296"), [Image(elf, tuple(range(pes)))]) as emulator:
        made, used = perf_counter() - start, _usage(emulator)[0]
        emulator.run(1000)
        memory = _usage(emulator)[1]
    print(f"{pes} PEs: made in {made:.1f} s, {used:.1f} s of CPU time (goal: 20 s); {memory:.1f} GB (goal: 12 GB)")


MEASURES: dict[str, Callable[[Path], None]] = {
    "one": lambda elf: _rate(elf, "pe-mesh", 1, "150"),
    "strict": strict,
    "mesh": lambda elf: _rate(elf, "pe-mesh", 16, "100"),
    "chip": chip,
    "board": board,
}


def _usage(emulator: Emulator) -> tuple[float, float]:
    """CPU seconds and largest memory in GB of the worker's process, as reported by Linux."""
    process = Path(f"/proc/{emulator.worker_process_id}")
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    peak = re.search(r"VmHWM:\s*(\d+) kB", (process / "status").read_text())
    assert peak is not None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak[1]) / 1e6


def _instructions(emulator: Emulator, pes: int) -> int:
    return sum(emulator.counters(pe).instructions for pe in range(pes))


if __name__ == "__main__":
    main()
