"""The numpy models, the emulator's C and Renode's C# give equal results for the same commands and descriptors.

`device_vectors.json` holds the results of the C#, for comparison on machines without Mono.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from emulator.device_vectors import (
    COMMAND,
    COPIED,
    DESCRIPTOR,
    CopyVector,
    copied_in_csharp,
    crc_of_command,
    crc_of_copy,
    descriptor_of,
    in_csharp,
    load,
)
from emulator.programs import program, running
from emulator.renode.devices import Devices, compile_devices
from emulator.test_mac_array import SERVER
from emulator.test_mac_array import run as run_command
from npukit.board.board import load_board
from npukit.emulator.builtin import Emulator
from oracles.dma_model import copy
from oracles.mac_array_command import Error, Kind
from oracles.mac_array_model import Array

COMMANDS, COPIES = load()

# For each byte from the host: run the descriptor, wait until its bytes have arrived anywhere, answer with the error.
COPIER = f"""
#include "board.h"
int main(void)
{{
    for (;;) {{
        while (!(UART_STATUS & 1)) {{
            wait_for_event();
        }}
        (void)UART_DATA;
        DMA_DOORBELL = {DESCRIPTOR}U;
        while (REGISTER(0xE2000004U) & 1) {{
        }}
        for (const uint32_t begun = TIMER_CYCLES; TIMER_CYCLES - begun < 2000U;) {{
        }}
        UART_DATA = 'A' + REGISTER(0xE200000CU);
        REGISTER(0xE200000CU) = 0;
    }}
}}
"""
SLEEPER = """
#include "board.h"
int main(void)
{
    for (;;) {
        wait_for_event();
    }
}
"""


def test_they_are_of_every_kind_with_and_without_errors() -> None:
    kinds = {int.from_bytes(bytes.fromhex(vector.command)[4:5], "little") for vector in COMMANDS if vector.error == 0}
    assert kinds == set(Kind)
    assert {vector.error for vector in COMMANDS} >= {Error.NONE, Error.OPERAND, Error.KIND, Error.FIELD}
    assert {vector.error for vector in COPIES} == {0, 4, 5, 6}


def test_commands_in_numpy() -> None:
    slot = load_board("pe-mesh").accelerator_named("mac_array")
    assert slot is not None
    for vector in COMMANDS:
        sram = vector.memory()
        outcome = Array(sram, slot.figures).execute(COMMAND)
        assert (*outcome, crc_of_command(sram)) == (vector.error, vector.cycles, vector.crc), vector.number


def test_copies_in_numpy() -> None:
    for vector in COPIES:
        memories = vector.memories()
        if vector.error == 0:
            copy(memories, descriptor_of(vector))
        assert {str(pe): crc_of_copy(memory) for pe, memory in memories.items()} == vector.crcs, vector.number


def test_commands_in_the_emulator() -> None:
    with running((program(SERVER), (0,))) as emulator:
        for vector in COMMANDS:
            sram = vector.memory()
            outcome = run_command(emulator, sram)
            assert (*outcome, crc_of_command(sram)) == (vector.error, vector.cycles, vector.crc), vector.number


def test_copies_in_the_emulator() -> None:
    with running((program(COPIER), (0,)), (program(SLEEPER), tuple(range(1, 16)))) as emulator:
        for vector in COPIES:
            assert emulated(emulator, vector) == (vector.error, vector.crcs), vector.number


def emulated(emulator: Emulator, vector: CopyVector) -> tuple[int, dict[str, int]]:
    first, end = COPIED
    for pe, memory in vector.memories().items():
        emulator.write_memory(pe, first, memory[first:end].tobytes())
    emulator.write_memory(0, DESCRIPTOR, bytes.fromhex(vector.descriptor))
    emulator.write(b"!")
    error = emulator.read(20)[0] - ord("A")
    left = {pe: np.zeros(end, np.uint8) for pe in vector.crcs}
    for pe, memory in left.items():
        memory[first:end] = np.frombuffer(emulator.read_memory(int(pe), first, end - first), np.uint8)
    return error, {pe: crc_of_copy(memory) for pe, memory in left.items()}


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    program: Path = compile_devices(tmp_path_factory.mktemp("devices"))
    with Devices(program, load_board("pe-mesh")) as running:
        yield running


def test_commands_in_csharp(devices: Devices) -> None:
    assert [in_csharp(devices, vector) for vector in COMMANDS] == COMMANDS


def test_copies_in_csharp(devices: Devices) -> None:
    assert [copied_in_csharp(devices, vector) for vector in COPIES] == COPIES
