"""The same image on the built-in emulator's core and on QEMU's: random instructions leave the same registers, flags and
memory. Both have the program at 0 and memory behind it, so it is one file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from time import monotonic, sleep

import pytest

from emulator.programs import program, run_to_sleep, running
from emulator.streams import DONE, DONE_AT, RESULTS, WORDS_OF_A_STREAM, program_text

STREAMS, LENGTH = 60, 40
BYTES = 4 * WORDS_OF_A_STREAM * STREAMS
_SECONDS = 60


def on_qemu(elf: Path, folder: Path) -> bytes:
    """What the program leaves, from QEMU's own monitor."""
    if shutil.which("qemu-system-arm") is None:
        pytest.skip("qemu-system-arm is not installed")
    memory = folder / "memory.bin"
    command = ["qemu-system-arm", "-machine", "mps2-an386", "-kernel", str(elf), "-nodefaults", "-display", "none"]
    with subprocess.Popen(
        [*command, "-monitor", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as qemu:
        assert qemu.stdin is not None
        until = monotonic() + _SECONDS
        while monotonic() < until and not _is_done(memory):
            sleep(0.1)
            qemu.stdin.write(f'pmemsave {RESULTS} {DONE_AT + 4 - RESULTS} "{memory}"\n')
            qemu.stdin.flush()
        qemu.kill()
    assert _is_done(memory), "QEMU did not come to the program's end"
    return memory.read_bytes()[:BYTES]


def _is_done(memory: Path) -> bool:
    return memory.is_file() and memory.read_bytes()[DONE_AT - RESULTS :] == DONE.to_bytes(4, "little")


def on_built_in(elf: Path) -> bytes:
    with running((elf, (0,))) as emulator:
        run_to_sleep(emulator)
        assert emulator.read_memory(0, DONE_AT, 4) == DONE.to_bytes(4, "little")
        return emulator.read_memory(0, RESULTS, BYTES)


def words_of(data: bytes, stream: int) -> list[str]:
    start = 4 * WORDS_OF_A_STREAM * stream
    return [data[at : at + 4][::-1].hex() for at in range(start, start + 4 * WORDS_OF_A_STREAM, 4)]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_instructions_leave_the_same_registers_and_memory(seed: int, tmp_path: Path) -> None:
    elf = program(program_text(seed, STREAMS, LENGTH))
    ours, theirs = on_built_in(elf), on_qemu(elf, tmp_path)
    for stream in range(STREAMS):
        assert words_of(ours, stream) == words_of(theirs, stream), f"stream {stream}"
    assert len(set(words_of(ours, 0))) > 10
