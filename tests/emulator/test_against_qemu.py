"""Random instructions leave the same registers, flags and memory on the built-in emulator's core and on QEMU's. Both
run the same file, because both have the program at 0 and memory behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.programs import program, run_to_sleep, running
from emulator.qemu_memory import memory_on_qemu
from emulator.streams import DONE, DONE_AT, RESULTS, WORDS_OF_A_STREAM, program_text

STREAMS, LENGTH = 60, 40
BYTES = 4 * WORDS_OF_A_STREAM * STREAMS


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
    ours, theirs = on_built_in(elf), memory_on_qemu(elf, (RESULTS, DONE_AT + 4), (DONE_AT, DONE), tmp_path)
    for stream in range(STREAMS):
        assert words_of(ours, stream) == words_of(theirs, stream), f"stream {stream}"
    assert len(set(words_of(ours, 0))) > 10
