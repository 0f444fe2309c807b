"""gdb itself, attached to a PE of the built-in emulator: breakpoints, steps, registers, memory."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from emulator.programs import RESULTS, program, words
from npukit.board.board import load_board
from npukit.emulator.debugged import DebuggedEmulator, Debugger
from npukit.errors import NpukitError
from npukit.project.images.image import Image

SOURCE = """#include "board.h"
__attribute__((noinline)) uint32_t twice(uint32_t x)
{
    return 2 * x;
}
int main(void)
{
    for (uint32_t i = 1; i <= 5; i++) {
        RESULTS[i] = twice(i) + DMA_PE;
    }
    volatile float half = 0.5F;
    half = half * 3.0F;
    RESULTS[0] = 1;
    return 0;
}
"""


def gdb() -> str:
    found = shutil.which("gdb-multiarch") or shutil.which("arm-none-eabi-gdb")
    if found is None:
        pytest.skip("neither gdb-multiarch nor arm-none-eabi-gdb is installed")
    return found


def debug(elf: Path, commands: list[str], pe: int = 0, pes: tuple[int, ...] = (0, 3)) -> tuple[str, list[int]]:
    """Output of gdb, and the PE's results at the end."""
    script = [part for command in commands for part in ("-ex", command)]
    program_of_gdb = gdb()
    emulator = DebuggedEmulator(load_board("pe-mesh"), [Image(elf, pes)], None, b"", Debugger(pe, 0))
    with emulator:
        target = f"target remote localhost:{emulator.port}"
        said: list[str] = []

        def run_gdb() -> None:
            command = [program_of_gdb, "-nx", "-batch", "-ex", "set confirm off", str(elf), "-ex", target, *script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            said.append(done.stdout + done.stderr)

        thread = threading.Thread(target=run_gdb)
        thread.start()
        try:
            assert emulator.read(60) == b""
        finally:
            thread.join(120)
        return said[0], words(emulator, pe, 6)


def test_breakpoints_registers_and_memory() -> None:
    text, results = debug(
        program(SOURCE),
        [
            "break twice",
            "continue",
            "print $r0",
            "continue",
            "print $r0",
            f"x/3xw {RESULTS}",
            "set var $r0 = 100",
            "delete",
            "detach",
        ],
    )
    assert text.count("Breakpoint 1, twice") == 2, text
    assert "$1 = 1\n" in text
    assert "$2 = 2\n" in text
    assert "0x10000:\t0x00000000\t0x00000002\t0x00000000" in text
    assert results == [1, 2, 200, 6, 8, 10]


def test_steps_one_instruction_at_a_time() -> None:
    text, results = debug(program(SOURCE), ["print $pc", "stepi", "stepi", "info symbol $pc", "break main", "continue",
                                            "next", "next", "backtrace", "print $d0", "kill"])  # fmt: skip
    assert "reset_handler" in text
    assert "main ()" in text, text
    assert results == [1, 2, 4, 6, 8, 10]


def test_another_pe_stops_while_all_time_stands_still() -> None:
    script = ["break twice", "continue", "print $r0", f"set var *(int *){RESULTS + 0x100} = 77", "delete", "detach"]
    text, results = debug(program(SOURCE), script, pe=3)
    assert "$1 = 1" in text
    assert results == [1, 5, 7, 9, 11, 13]


def test_a_fault_is_shown_in_gdb() -> None:
    elf = program('#include "board.h"\nint main(void) { RESULTS[0] = 1; REGISTER(0x30000000U) = 1; return 0; }')
    with pytest.raises(NpukitError, match="a store to address 0x30000000"):
        debug(elf, ["continue", "info registers pc"])


def test_a_memory_that_is_not_there_cannot_be_read() -> None:
    text, results = debug(program(SOURCE), ["x/xw 0x30000000", "detach"])
    assert "Cannot access memory at address 0x30000000" in text
    assert results[0] == 1
