"""Renode's devices in C# against the numpy models: independent readings of the hardware manual."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator.commands import SRAM_BYTES, overlaps, random_command, spoilt
from emulator.renode.devices import Devices
from emulator.test_mac_array import OVERLAPS
from npukit.board.board import Board
from oracles.dma_model import DRAM, MULTICAST, THIS_CHIP, Descriptor, copy
from oracles.mac_array_command import Command, Error, Kind
from oracles.mac_array_model import Array

COMMAND, DESCRIPTOR, DATA = 0x1000, 0x1_1000, 0x1_2000
DOORBELL, STATUS, COMPLETED = 0x00, 0x04, 0x08
BUSY_CYCLES, ARRAY_ERROR, ERROR_COMMAND = 0x0C, 0x10, 0x14
DMA_ERROR, PE, PES, CHIP, FLAGS = 0x0C, 0x10, 0x14, 0x18, 0x100
SENT, CAME = 1, 2
"""Flags."""

COMMANDS = 300


@pytest.fixture
def figures(board: Board) -> dict[str, int]:
    slot = board.accelerator_named("mac_array")
    assert slot is not None
    return slot.figures


def place(sram: np.ndarray, command: Command, address: int = COMMAND) -> None:
    sram[address : address + 96] = np.frombuffer(command.pack(), np.uint8)


def run(devices: Devices, sram: np.ndarray) -> tuple[Error, int]:
    """Run the chain at COMMAND in `sram` and update `sram`. Returns the error and the cycles."""
    before = devices.array(0, BUSY_CYCLES)
    devices.write(0, 0, sram.tobytes())
    devices.set_array(0, DOORBELL, COMMAND)
    devices.let_time_pass()
    sram[:] = np.frombuffer(devices.read(0), np.uint8)
    error = Error(devices.array(0, ARRAY_ERROR))
    devices.set_array(0, ARRAY_ERROR, 0)
    return error, devices.array(0, BUSY_CYCLES) - before


# --- MAC array


@pytest.mark.parametrize("seed", [11, 12])
def test_random_commands_leave_the_same_bytes_and_take_the_same_cycles(
    devices: Devices, figures: dict[str, int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    seen = set()
    for _ in range(COMMANDS):
        sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
        command = random_command(random, sram)
        command = spoilt(random, command) if random.random() < 0.2 else command
        place(sram, command)
        expected = sram.copy()
        outcome = Array(expected, figures).execute(COMMAND)
        if outcome[0] is Error.NONE and overlaps(command):
            expected, outcome = sram.copy(), (Error.OPERAND, 0)
        assert run(devices, sram) == outcome, command
        assert np.array_equal(sram, expected), command
        seen.add((command.kind, outcome[0]))
    assert {(kind, Error.NONE) for kind in Kind} <= seen
    assert {error for _, error in seen} >= {Error.KIND, Error.OPERAND, Error.ALIGNMENT, Error.FIELD}


@pytest.mark.parametrize(("command", "overlapped"), OVERLAPS)
def test_an_output_on_an_operand_is_refused_where_the_emulator_refuses_it(
    devices: Devices, command: Command, overlapped: str | None
) -> None:
    sram = np.full(SRAM_BYTES, 7, np.uint8)
    place(sram, command)
    assert run(devices, sram)[0] is (Error.OPERAND if overlapped else Error.NONE)
    assert devices.array(0, COMPLETED) == (0 if overlapped else 1)


def test_ties_are_rounded_as_tflite_rounds_them(devices: Devices) -> None:
    """Halves round up in the multiplication and away from zero in the shift. No random multiplier produces a half."""
    halves = {-3: -1, -1: 0, 1: 1, 3: 2}  # times 2^30 / 2^31
    quarters = {-10: -3, -6: -2, 6: 2, 10: 3}  # times (2^31 - 1) / 2^31, without effect, and 1/4
    biases = np.array([*halves, *quarters, *[0] * 8], "<i4")
    multipliers = np.array([1 << 30] * 4 + [(1 << 31) - 1] * 12, "<i4")
    shifts = np.array([0] * 4 + [-2] * 12, np.int8)
    ones = dict.fromkeys(("input_height", "input_width", "output_height", "output_width", "input_channels"), 1)
    ones |= dict.fromkeys(("kernel_height", "kernel_width", "stride_y", "stride_x", "dilation_y", "dilation_x"), 1)
    command = Command(
        kind=Kind.CONVOLUTION,
        **ones,
        output_channels=8,
        clamp_min=-128,
        clamp_max=127,
        input=0x3000,
        weights=0x3010,
        parameters=0x3020,
        output=0x4000,
    )
    sram = np.zeros(SRAM_BYTES, np.uint8)
    sram[0x3020 : 0x3020 + 144] = np.frombuffer(biases.tobytes() + multipliers.tobytes() + shifts.tobytes(), np.uint8)
    place(sram, command)
    assert run(devices, sram)[0] is Error.NONE
    assert sram[0x4000:0x4008].view(np.int8).tolist() == [*halves.values(), *quarters.values()]


def test_a_chain_sets_the_event_register_once_at_its_end(devices: Devices, figures: dict[str, int]) -> None:
    random = np.random.default_rng(1)
    sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
    commands = [random_command(random, sram) for _ in range(3)]
    for number, command in enumerate(commands):
        here = COMMAND + 96 * number
        place(sram, replace(command, next=here + 96 if number < 2 else 0), here)
    expected, total = sram.copy(), 0
    for number in range(3):
        total += Array(expected, figures).execute(COMMAND + 96 * number, first=number == 0)[1]
    assert run(devices, sram) == (Error.NONE, total)
    assert np.array_equal(sram, expected)
    assert devices.events(0) == [total]
    assert devices.array(0, COMPLETED) == 3


def test_an_error_stops_the_chain_and_names_the_command(devices: Devices) -> None:
    random = np.random.default_rng(2)
    sram = random.integers(0, 256, SRAM_BYTES, np.uint8)
    place(sram, replace(random_command(random, sram), next=COMMAND + 96))
    place(sram, Command(kind=9), COMMAND + 96)
    devices.write(0, 0, sram.tobytes())
    devices.set_array(0, DOORBELL, COMMAND)
    devices.set_array(0, DOORBELL, COMMAND)
    assert (devices.array(0, STATUS), devices.array(0, ARRAY_ERROR)) == (3, Error.BUSY)
    devices.set_array(0, ARRAY_ERROR, 1)
    devices.let_time_pass()
    assert (devices.array(0, STATUS), devices.array(0, ARRAY_ERROR)) == (2, Error.KIND)
    assert (devices.array(0, ERROR_COMMAND), devices.array(0, COMPLETED)) == (COMMAND + 96, 1)
    assert len(devices.events(0)) == 1


@pytest.mark.parametrize("address", [COMMAND + 4, SRAM_BYTES, SRAM_BYTES - 80])
def test_a_command_must_lie_in_memory(devices: Devices, address: int) -> None:
    devices.set_array(0, DOORBELL, address)
    assert (devices.array(0, STATUS), devices.array(0, ARRAY_ERROR)) == (1, Error.NONE)
    devices.let_time_pass()
    assert (devices.array(0, STATUS), devices.array(0, ARRAY_ERROR)) == (2, Error.PLACE)


# --- DMA and network-on-chip


def send(source_pe: int, destination_pe: int, size: int, rows: int = 1) -> Descriptor:
    return Descriptor(
        source_pe=source_pe,
        source=DATA,
        destination_pe=destination_pe,
        destination=DATA,
        row_bytes=size,
        rows=rows,
        source_stride=size,
        destination_stride=size,
        source_flag=SENT,
        destination_flag=CAME,
    )


def ring(devices: Devices, pe: int, *chain: Descriptor) -> None:
    for number, descriptor in enumerate(chain):
        here = DESCRIPTOR + 48 * number
        linked = replace(descriptor, next=here + 48 if number + 1 < len(chain) else 0)
        devices.write(pe, here, linked.pack())
    devices.set_noc(pe, DOORBELL, DESCRIPTOR)
    devices.let_time_pass()


def test_random_copies_leave_the_same_bytes(devices: Devices) -> None:
    random = np.random.default_rng(3)
    for _ in range(60):
        row_bytes, rows = (int(value) for value in random.integers(1, 70, 2))
        source_stride, destination_stride = (int(value) for value in random.integers(-90, 90, 2))
        source_pe, destination_pe = (int(pe) for pe in random.integers(0, 16, 2))
        descriptor = replace(
            send(source_pe, destination_pe, row_bytes, rows),
            source=0x1_4000 + int(random.integers(0, 64)),
            destination=0x1_8000 + int(random.integers(0, 64)),
            source_stride=source_stride,
            destination_stride=destination_stride,
        )
        memories = {pe: random.integers(0, 256, SRAM_BYTES, np.uint8) for pe in sorted({0, source_pe, destination_pe})}
        memories[0][DESCRIPTOR : DESCRIPTOR + 48] = np.frombuffer(descriptor.pack(), np.uint8)
        for pe, memory in memories.items():
            devices.write(pe, 0, memory.tobytes())
        ring(devices, 0, descriptor)
        copy(memories, descriptor)
        for pe, memory in memories.items():
            assert devices.read(pe) == memory.tobytes(), descriptor
    assert devices.noc(0, DMA_ERROR) == 0


def events(devices: Devices, *pes: int) -> dict[int, list[int]]:
    return {pe: devices.events(pe) for pe in pes}


@pytest.mark.parametrize(
    ("chain", "woken"),
    [
        ([send(0, 1, 64)], {0: [24], 1: [28]}),  # 20 cycles of setup, 4 flits, one link
        ([send(0, 15, 64)], {15: [20 + 6 * 4 + 4]}),
        ([send(0, 1, 20, rows=3)], {1: [20 + 4 + 6]}),  # each row starts a flit
        ([send(0, 1, 0)], {1: [20 + 4 + 1]}),
        ([send(5, 0, 64)], {0: [20 + 8 + 4, 20 + 8 + 8 + 4], 5: []}),  # the request travels too
        ([send(0, 1, 64), send(0, 1, 64)], {0: [24, 48], 1: [28, 52]}),
        ([replace(send(0, 0, 64), destination=DATA + 64, source_flag=0xFF)], {0: [20 + 2 * 4]}),
        ([replace(send(0, DRAM, 64), source_flag=0xFF), send(DRAM, 5, 64)], {5: [24 + 20 + 60 + 8 + 4]}),
    ],
)
def test_messages_take_the_manual_s_cycles(
    devices: Devices, chain: list[Descriptor], woken: dict[int, list[int]]
) -> None:
    ring(devices, 0, *chain)
    assert events(devices, *woken) == woken


def test_multicast_reaches_everyone(devices: Devices) -> None:
    places = [1, 2, 4, 6]
    devices.write(0, 0x1800, np.array([[pe, DATA + pe] for pe in places], "<u4").tobytes())
    devices.write(0, DATA, bytes(range(64)))
    ring(devices, 0, replace(send(0, 0x1800, 64), kind=1 | MULTICAST, destination=len(places)))
    assert [devices.read(pe, DATA + pe, 64) for pe in places] == [bytes(range(64))] * len(places)
    assert events(devices, *places) == {1: [28], 2: [32], 4: [28], 6: [36]}
    assert [devices.noc(pe, FLAGS + 4 * CAME) for pe in (0, *places)] == [0, 1, 1, 1, 1]


def test_dram_holds_what_it_was_sent(devices: Devices) -> None:
    data = bytes(range(200))
    devices.write(3, DATA, data)
    there, back = send(3, DRAM, 200), send(DRAM, 9, 200)
    high = 0x7FFF_FFFF - 300
    ring(devices, 3, replace(there, destination=high), replace(back, source=high))
    assert devices.read(9, DATA, 200) == data


def test_dram_is_one_piece_and_reads_as_zeros_where_nobody_wrote(devices: Devices) -> None:
    """Rows begin and end at any address: the model keeps DRAM in pages of 64 KB."""
    random, rows, stride = np.random.default_rng(5), 40, 60_007
    data = random.integers(1, 256, (rows, 700), np.uint8)
    devices.write(0, DATA, data.tobytes())
    there = replace(send(0, DRAM, 700, rows), destination=0x1_0000 - 300, destination_stride=stride, source_flag=0xFF)
    ring(devices, 0, there)
    back = replace(send(DRAM, 9, 900, rows), source=0x1_0000 - 400, source_stride=stride, source_flag=0xFF)
    ring(devices, 0, back)
    read = np.frombuffer(devices.read(9, DATA, 900 * rows), np.uint8).reshape(rows, 900)
    assert np.array_equal(read[:, 100:800], data)
    assert not read[:, :100].any()
    assert not read[:, 800:].any()


def test_registers_of_a_mesh_of_chips(program: Path, board: Board) -> None:
    chips = board.mesh.chips.model_copy(update={"columns": 3, "rows": 2})
    many = board.model_copy(update={"mesh": board.mesh.model_copy(update={"chips": chips})})
    with Devices(program, many) as devices:
        assert [devices.noc(37, register) for register in (PE, PES, CHIP)] == [37, 96, 2]
        devices.set_noc(37, FLAGS + 4 * 63, 0xFFFF_FFFF)
        assert devices.noc(37, FLAGS + 4 * 63) == 0xFFFF_FFFF
        ring(devices, 0, replace(send(0, 16, 64), source_flag=0xFF))  # three links, then the border at its lower rate
        assert devices.events(16) == [20 + 3 * 4 + 40 + 64 // 4]
        ring(devices, 0, replace(send(0, 95, 64), source_flag=0xFF))
        across, down = 3 + 40 // 4 + 3 + 40 // 4 + 3, 3 + 40 // 4 + 3
        assert devices.events(95) == [20 + 4 * (across + down) + 64 // 4]
        devices.write(33, DATA, bytes(range(64)))
        own = send(THIS_CHIP + 1, THIS_CHIP + DRAM, 64), send(THIS_CHIP + DRAM, THIS_CHIP + 4, 64)
        ring(devices, 33, *own)  # PE 1 of the third chip
        assert devices.read(36, DATA, 64) == bytes(range(64))


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kind": 2}, 3),
        ({"destination_pe": 16}, 4),
        ({"destination_pe": 2}, 4),  # the link on the way is dead
        ({"source_pe": DRAM + 1}, 4),
        ({"destination_pe": THIS_CHIP + 16}, 4),
        ({"destination": SRAM_BYTES - 10}, 5),
        ({"source": DATA, "source_stride": -DATA - 1, "rows": 2}, 5),
        ({"source_flag": 64}, 6),
    ],
)
def test_dma_errors(program: Path, board: Board, wrong: dict[str, int], error: int) -> None:
    broken = board.model_copy(update={"mesh": board.mesh.model_copy(update={"dead_links": ((1, 2),)})})
    with Devices(program, broken) as devices:
        ring(devices, 0, replace(send(0, 1, 16), **wrong), send(0, 1, 16))
        assert (devices.noc(0, STATUS), devices.noc(0, DMA_ERROR)) == (2, error)
        assert (devices.noc(1, FLAGS + 4 * CAME), len(devices.events(0))) == (0, 1)
        devices.set_noc(0, DMA_ERROR, 0)
        assert devices.noc(0, STATUS) == 0


def test_a_ninth_chain_is_refused_and_eight_run(devices: Devices) -> None:
    devices.write(0, DESCRIPTOR, send(0, 1, 16).pack())
    for _ in range(9):
        devices.set_noc(0, DOORBELL, DESCRIPTOR)
    assert (devices.noc(0, STATUS), devices.noc(0, DMA_ERROR)) == (3, 1)
    devices.let_time_pass()
    assert (devices.noc(0, COMPLETED), devices.noc(1, FLAGS + 4 * CAME)) == (8, 8)
