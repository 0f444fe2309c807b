"""Generated kernels on the built-in emulator's core and on QEMU's: the same in every register and byte of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.cortex_m import laboratory
from emulator.kernel_program import DONE, DONE_AT, END, KEPT, REGISTERS, RESULTS, SEED, WORDS, all_places, program_text
from emulator.kernels import Case, cases
from emulator.programs import program, run_to_sleep, running
from emulator.qemu_memory import memory_on_qemu

GROUPS = cases()
MEMORY = (RESULTS, END)


@pytest.fixture(scope="module", params=GROUPS)
def group(request: pytest.FixtureRequest) -> dict[str, Case]:
    return GROUPS[request.param]


@pytest.fixture(scope="module")
def elf(group: dict[str, Case]) -> Path:
    return program(program_text(group))


@pytest.fixture(scope="module")
def ours(elf: Path) -> bytes:
    """Memory from the results on, after a run on the built-in emulator."""
    with running((elf, (0,))) as emulator:
        run_to_sleep(emulator)
        return emulator.read_memory(0, RESULTS, END - RESULTS)


@pytest.mark.exhaustive
def test_outputs_are_right(group: dict[str, Case], ours: bytes) -> None:
    for (name, case), places in zip(group.items(), all_places(group).values(), strict=True):
        if case.output is not None:
            found = output(case, ours[places.output - RESULTS :])
            np.testing.assert_array_equal(found, case.output, err_msg=name)


def output(case: Case, memory: bytes) -> np.ndarray:
    layout = case.kernel.output
    return laboratory.unpack(layout, np.frombuffer(memory[: layout.bytes], np.uint8), case.zero)


def test_registers_and_memory_are_the_same_on_qemu(
    group: dict[str, Case], elf: Path, ours: bytes, tmp_path: Path
) -> None:
    """Compares registers, outputs, scratch memory, their surroundings, and the stack."""
    theirs = memory_on_qemu(elf, MEMORY, (DONE_AT, DONE), tmp_path)
    for number, name in enumerate(group):
        found = registers(ours, number)
        assert found == registers(theirs, number), name
        assert [found[f"r{n}"] for n in KEPT] == [f"{SEED * n:08x}" for n in KEPT], name
    assert ours == theirs


def registers(memory: bytes, number: int) -> dict[str, str]:
    start = 4 * WORDS * number
    words = (memory[at : at + 4][::-1].hex() for at in range(start, start + 4 * WORDS, 4))
    return dict(zip(REGISTERS, words, strict=True))
