"""A program on QEMU, and what it leaves in memory."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import monotonic, sleep

from helpers import need

_SECONDS = 60


def memory_on_qemu(elf: Path, span: tuple[int, int], done: tuple[int, int], folder: Path) -> bytes:
    """The bytes of `span` once the word at the address `done` has the value that comes with it, by QEMU's own monitor.

    Skips the test where there is no QEMU.
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
            # Stopped, as memory that is saved while the program runs may have its end and not yet what came before.
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
