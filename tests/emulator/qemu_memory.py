"""A program on QEMU, and the memory afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import monotonic, sleep

from helpers import need

_SECONDS = 60


def memory_on_qemu(elf: Path, span: tuple[int, int], done: tuple[int, int], folder: Path) -> bytes:
    """The bytes of `span`, read through QEMU's monitor once memory holds the word `done`, an (address, value) pair.

    Skips the test without QEMU.
    """
    need("qemu-system-arm")
    memory, (start, end) = folder / "memory.bin", span
    command = ["qemu-system-arm", "-machine", "mps2-an386", "-kernel", str(elf), "-nodefaults", "-display", "none"]
    with subprocess.Popen(
        [*command, "-monitor", "stdio"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as qemu:
        assert qemu.stdin is not None
        until = monotonic() + _SECONDS
        while monotonic() < until and not _is_done(memory, start, end, done):
            sleep(0.1)
            # Stop first: a save while the program runs may catch its last store without the earlier ones.
            qemu.stdin.write(f'stop\npmemsave {start} {end - start} "{memory}"\ncont\n')
            qemu.stdin.flush()
        qemu.kill()
    assert _is_done(memory, start, end, done), "QEMU did not come to the program's end"
    return memory.read_bytes()


def _is_done(memory: Path, start: int, end: int, done: tuple[int, int]) -> bool:
    address, value = done
    if not memory.is_file() or len(data := memory.read_bytes()) != end - start:
        return False
    return data[address - start : address - start + 4] == value.to_bytes(4, "little")
