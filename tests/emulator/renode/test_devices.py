"""Renode's devices in C# against the numpy models: independent readings of the hardware manual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator.commands import SRAM_BYTES, overlaps, random_command, spoilt
from emulator.programs import run_to_sleep, words
from emulator.renode.devices import Devices
from emulator.test_dma import start
from emulator.test_mac_array import OVERLAPS
from npukit.board.board import Board, load_board
from npukit.data import data_folder
from oracles.dma_model import DRAM, MULTICAST, NO_FLAG, THIS_CHIP, Descriptor, copy
from oracles.mac_array_command import Command, Error, Kind
from oracles.mac_array_model import Array

COMMAND, DESCRIPTOR, LIST, DATA = 0x1000, 0x1_1000, 0x1_1800, 0x1_2000
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
            expected, outcome = sram.copy(), (Error.OPERAND, figures["setup_cycles"])
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
    """A source elsewhere has no flag. Chains of these tests start at PE 0 unless they say otherwise."""
    return Descriptor(
        source_pe=source_pe,
        source=DATA,
        destination_pe=destination_pe,
        destination=DATA,
        row_bytes=size,
        rows=rows,
        source_stride=size,
        destination_stride=size,
        source_flag=SENT if source_pe == 0 else NO_FLAG,
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
        # The fetch in cycle 1, the packet in 1 + 6; 5 flits, two grants of outputs, and 2 cycles for the link.
        ([send(0, 1, 64)], {0: [7 + 5], 1: [7 + 2 + 2 + 5 + 1]}),
        ([send(0, 15, 64)], {15: [7 + 2 + 6 * 2 + 5 + 1]}),
        ([send(0, 1, 20, rows=3)], {1: [7 + 2 + 2 + 7 + 1]}),  # each row starts a flit
        ([send(0, 1, 0)], {0: [7 + 1], 1: [7 + 2 + 2 + 1 + 1]}),
        (
            [send(0, 1, 32 * 16)],
            {0: [7 + 32 + 2], 1: [7 + 2 + 2 + 32 + 2 + 1]},
        ),  # one flit more than a packet has room for
        # The request of two flits goes two links, and the data goes back.
        ([send(5, 0, 64)], {0: [7 + 2 + 4 + 2 + 1 + 2 + 4 + 5 + 1], 5: []}),
        ([send(0, 1, 64), send(0, 1, 64)], {0: [12, 12 + 6 + 5], 1: [17, 17 + 6 + 5]}),
        # Own data is received when it has been sent.
        ([replace(send(0, 0, 64), destination=DATA + 64, source_flag=0xFF)], {0: [7 + 4 + 5 + 1]}),
        # DRAM has the packet whole after 6 cycles, opens a row and writes a burst; the acknowledgement takes 5 cycles.
        ([send(0, DRAM, 64)], {0: [9 + 6 + 10 + 4 + 2 + 2]}),
        ([send(DRAM, 5, 64)], {5: [9 + 3 + 60 + 10 + 2 + 4 + 5 + 1]}),
    ],
)
def test_messages_take_the_manual_s_cycles(
    devices: Devices, chain: list[Descriptor], woken: dict[int, list[int]]
) -> None:
    ring(devices, 0, *chain)
    assert events(devices, *woken) == woken


def test_of_entries_with_the_same_pe_the_first_counts(devices: Devices) -> None:
    devices.write(0, LIST, np.array([[1, 0x1_3000], [2, 0x1_3000], [1, 0x1_4000]], "<u4").tobytes())
    devices.write(0, DATA, b"npukit")
    ring(devices, 0, replace(send(0, LIST, 6), kind=1 | MULTICAST, destination=3))
    assert [devices.read(1, address, 6) for address in (0x1_3000, 0x1_4000)] == [b"npukit", bytes(6)]
    assert [devices.noc(pe, FLAGS + 4 * CAME) for pe in (1, 2)] == [1, 1]


def test_a_list_is_sent_in_groups_of_sixty(devices: Devices) -> None:
    places = [[1 + number % 2, 0x1_3000 + 64 * number] for number in range(70)]
    devices.write(0, LIST, np.array(places, "<u4").tobytes())
    ring(devices, 0, replace(send(0, LIST, 6), kind=1 | MULTICAST, destination=70))
    assert [devices.noc(pe, FLAGS + 4 * CAME) for pe in (1, 2)] == [2, 2]
    assert devices.noc(0, FLAGS + 4 * SENT) == 1


FIGURES = {"dram_refresh_interval = 1170": "dram_refresh_interval = 0"}
OTHERS = {
    "columns = 1, rows = 1 }": "columns = 2, rows = 2 }",
    "hop_cycles = 2\n": "hop_cycles = 3\n",
    "packet_flits = 32": "packet_flits = 20",
    "buffer_packets = 2": "buffer_packets = 1",
    "chip_link_bytes_per_cycle = 4": "chip_link_bytes_per_cycle = 2.5",
    "dram_bytes_per_cycle = 16": "dram_bytes_per_cycle = 21",
}
LISTS = ((1, 4, 5, 15), (0, 3, 6), tuple(range(16)), (9, 9, 9), tuple(number % 12 for number in range(70)))


def messages() -> list[tuple[Descriptor, tuple[int, ...]]]:
    """Messages that wake no PE twice in a row, and the PEs of the multicasts' lists."""
    random = np.random.default_rng(7)
    ways = [(0, 13), (0, 0), (6, 9), (11, 0), (0, DRAM), (DRAM, 7), (DRAM, DRAM), (3, DRAM)]
    alone = [(source, to, ()) for source, to in ways] + [(source, LIST, pes) for source in (0, 5) for pes in LISTS[:-1]]
    sizes = [(8, 5), (int(random.integers(40, 500)), 4), (int(random.integers(500, 2000)), 2)]
    found = []
    for number, (source, to, pes) in enumerate([*alone, (0, LIST, LISTS[-1])]):
        size, rows = sizes[number % 3]
        plain = replace(send(source, to, size, rows), destination=0x1_8000, source_flag=NO_FLAG)
        kind = {"kind": 1 | MULTICAST, "destination": len(pes)} if pes else {}
        found.append((replace(plain, **kind), pes))
    return found


def emulated(board: str, descriptor: Descriptor, places: bytes) -> dict[int, list[int]]:
    """Cycles from the doorbell to each wake-up in npukit's emulator."""
    pes = load_board(board).pe_count
    with start({0: [descriptor]}, pes, board) as emulator:
        emulator.write_memory(0, LIST, places)
        run_to_sleep(emulator)
        times = {pe: words(emulator, pe, 9) for pe in range(pes)}
    return {pe: [time - times[0][0] for time in found[1:] if time] for pe, found in times.items()}


@pytest.mark.parametrize("changes", [FIGURES, FIGURES | OTHERS], ids=["pe-mesh", "chips"])
def test_a_message_alone_takes_as_long_as_in_the_emulator(
    program: Path, changes: dict[str, str], tmp_path: Path
) -> None:
    text = (data_folder("boards") / "pe-mesh.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "changed.toml").write_text(text)
    board = load_board(str(tmp_path / "changed.toml"))
    spread = board.pe_count // 16
    for descriptor, pes in messages():
        message, places = scattered(descriptor, pes, spread)
        with Devices(program, board) as devices:
            devices.write(0, LIST, places)
            ring(devices, 0, message)
            there = events(devices, *range(board.pe_count))
        assert there == emulated(str(tmp_path / "changed.toml"), message, places), (message, pes)


def scattered(descriptor: Descriptor, pes: Sequence[int], spread: int) -> tuple[Descriptor, bytes]:
    """The message with PEs of the whole board, and the list of its destinations."""
    source, to = (pe * spread if pe < DRAM else pe for pe in (descriptor.source_pe, descriptor.destination_pe))
    to = descriptor.destination_pe if pes else to
    places = np.array([[pe * spread, 0x1_8000] for pe in pes], "<u4").tobytes()
    return replace(descriptor, source_pe=source, destination_pe=to), places


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
        # Three links, then the packet of 5 flits whole at the border, 20 cycles on its link, and the way over.
        ring(devices, 0, replace(send(0, 16, 64), source_flag=0xFF))
        assert devices.events(16) == [7 + 2 + 3 * 2 + 6 + 20 + 40 + 6]
        ring(devices, 0, replace(send(0, 95, 64), source_flag=0xFF))
        border = 6 + 20 + 40
        assert devices.events(95) == [7 + 2 + 3 * (3 * 2) + 2 * border + 3 * 2 + border + 3 * 2 + 6]
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
        ({"source_pe": 4}, 6),  # has no source flag
        ({"kind": 1 | MULTICAST, "destination_pe": LIST, "destination": 2}, 4),  # DRAM in a list
        ({"kind": 1 | MULTICAST, "destination_pe": LIST, "destination": 0}, 5),
    ],
)
def test_dma_errors(program: Path, board: Board, wrong: dict[str, int], error: int) -> None:
    broken = board.model_copy(update={"mesh": board.mesh.model_copy(update={"dead_links": ((1, 2),)})})
    with Devices(program, broken) as devices:
        devices.write(0, LIST, np.array([[1, DATA], [DRAM, 0]], "<u4").tobytes())
        ring(devices, 0, replace(send(0, 1, 16), **wrong), send(0, 1, 16))
        assert (devices.noc(0, STATUS), devices.noc(0, DMA_ERROR)) == (2, error)
        list_cycles = 1 if error == 4 and "kind" in wrong else 0
        assert (devices.noc(1, FLAGS + 4 * CAME), devices.events(0)) == (0, [1 + 6 + list_cycles])
        devices.set_noc(0, DMA_ERROR, 0)
        assert devices.noc(0, STATUS) == 0


def test_a_ninth_chain_is_refused_and_eight_run(devices: Devices) -> None:
    devices.write(0, DESCRIPTOR, send(0, 1, 16).pack())
    for _ in range(9):
        devices.set_noc(0, DOORBELL, DESCRIPTOR)
    assert (devices.noc(0, STATUS), devices.noc(0, DMA_ERROR)) == (3, 1)
    devices.let_time_pass()
    assert (devices.noc(0, COMPLETED), devices.noc(1, FLAGS + 4 * CAME)) == (8, 8)
