"""DMA and network-on-chip: bytes against the numpy model, cycles against the manual's rules worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emulator.programs import RESULTS, program, run_to_sleep, running, words
from npukit.board.board import load_board
from npukit.data import data_folder
from npukit.emulator.builtin import Emulator
from npukit.emulator.fault_plan import FaultPlan
from npukit.plan.tensors.routes import Link, Routes
from oracles.dma_model import DRAM, MULTICAST, THIS_CHIP, Descriptor, copy
from oracles.mac_array_command import Command, Kind

DESCRIPTORS = 0x1_1000
DATA = 0x1_2000
SENT, CAME = 1, 2
"""Flags."""

# PEs with a descriptor start it at the same cycle. Every PE then records the cycles at which it was woken.
PROGRAM = """
#include "board.h"

static uint32_t ring(void)
{
    uint32_t before;
    /* The store starts 3 cycles after the load of the time. */
    __asm volatile("dsb\\n\\tldr %0, [%1]\\n\\tnop\\n\\tstr %2, [%3]"
        : "=&r"(before) : "r"(0xE1000000U), "r"(WORK), "r"(0xE2000000U) : "memory");
    return before + 3;
}

static uint32_t sleep_until_event(void)
{
    uint32_t now;
    __asm volatile("wfe\\n\\tldr %0, [%1]" : "=r"(now) : "r"(0xE1000000U) : "memory");
    return now;
}

int main(void)
{
    const uint32_t sends = REGISTER(WORK + 4U) != 0;
    while (TIMER_CYCLES < 1000U) {
    }
    RESULTS[0] = sends ? ring() : 0;
    for (uint32_t i = 1; i < 9; i++) {
        RESULTS[i] = sleep_until_event();
    }
    return 0;
}
"""


def board_with(folder: Path, old: str, new: str) -> str:
    """A copy of the pe-mesh board with one change."""
    text = (data_folder("boards") / "pe-mesh.toml").read_text()
    assert old in text
    path = folder / "changed.toml"
    path.write_text(text.replace(old, new))
    return str(path)


def start(
    descriptors: dict[int, Sequence[Descriptor]], pes: int = 16, board: str = "pe-mesh", plan: FaultPlan | None = None
) -> Emulator:
    """Run the program on every PE. Some PEs have chains of descriptors to start."""
    emulator = running((program(PROGRAM), tuple(range(pes))), board=board, plan=plan)
    for pe, chain in descriptors.items():
        for number, descriptor in enumerate(chain):
            here = DESCRIPTORS + 48 * number
            linked = replace(descriptor, next=here + 48 if number + 1 < len(chain) else 0)
            emulator.write_memory(pe, here, linked.pack())
    return emulator


def run(descriptors: dict[int, Sequence[Descriptor]], pes: int = 16, board: str = "pe-mesh") -> dict[int, list[int]]:
    """Cycles from the doorbell to each wake-up, for each PE."""
    with start(descriptors, pes, board) as emulator:
        run_to_sleep(emulator)
        times = {pe: words(emulator, pe, 9) for pe in range(pes)}
    rung = times[min(descriptors)][0]
    return {pe: [time - rung for time in found[1:] if time] for pe, found in times.items()}


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


SENDS = 1 + 6
"""The grant of the first packet: the fetch is granted in the cycle behind the doorbell, and takes 6 cycles."""
LEAVES = SENDS + 2
"""The grant of the first output."""


def test_to_a_neighbour() -> None:
    woken = run({0: [send(0, 1, 64)]})  # a header and 4 flits
    assert woken[0] == [SENDS + 5]
    assert woken[1] == [LEAVES + 2 + 5 + 1]


def test_across_the_chip() -> None:
    woken = run({0: [send(0, 15, 64)]})
    assert woken[15] == [LEAVES + 6 * 2 + 5 + 1]


def test_each_row_starts_a_flit() -> None:
    woken = run({0: [send(0, 1, 20, rows=3)]})  # 3 rows of 2 flits
    assert woken[1] == [LEAVES + 2 + 7 + 1]


def test_a_copy_of_nothing_is_a_signal_of_one_flit() -> None:
    woken = run({0: [send(0, 1, 0)]})
    assert woken[1] == [LEAVES + 2 + 1 + 1]


def test_a_long_row_is_cut_into_packets_of_32_flits() -> None:
    woken = run({0: [send(0, 1, 16 * 40)]})  # 31 and 9 flits of data
    assert woken[0] == [SENDS + 32 + 10]
    assert woken[1] == [LEAVES + 2 + 32 + 10 + 1]


def test_a_packet_has_whole_rows_if_they_fit() -> None:
    """Rows of 12 flits go two to a packet."""
    assert run({0: [send(0, 1, 16 * 12, rows=3)]})[1] == [LEAVES + 2 + 25 + 13 + 1]


def test_within_a_pe() -> None:
    """The port receives no earlier than in the last cycle of sending."""
    here = replace(send(0, 0, 64), destination=DATA + 64, source_flag=0xFF)
    assert run({0: [here]})[0] == [SENDS + 4 + 5 + 1]


def test_fetched_from_another_pe() -> None:
    """A request of 2 flits goes two hops, and the data come back."""
    woken = run({0: [replace(send(5, 0, 64), source_flag=0xFF)]})
    served = LEAVES + 2 * 2 + 2 + 1
    assert woken[0] == [served + 2 + 2 * 2 + 5 + 1]
    assert woken[5] == []


def test_a_chain_goes_on_when_the_source_is_done() -> None:
    woken = run({0: [send(0, 1, 64), send(0, 1, 64)]})
    assert woken[0] == [SENDS + 5, SENDS + 5 + 6 + 5]
    assert woken[1] == [LEAVES + 8, LEAVES + 8 + 11]


def test_packets_wait_for_busy_links() -> None:
    """PE 1 takes the link to PE 2 for 11 cycles; the packet from PE 0 is there two cycles after the begin."""
    woken = run({0: [send(0, 2, 160)], 1: [send(1, 2, 160)]})
    assert woken[2] == [LEAVES + 2 + 12, LEAVES + 11 + 2 + 12]
    assert woken[0] == [SENDS + 11]


def test_a_full_buffer_holds_the_sender() -> None:
    """PEs 0 and 8 send to PE 4: packets of PE 8 wait in two buffers on the way, and the next ones in PE 8."""
    woken = run({0: [send(0, 4, 16 * 31 * 8)], 8: [send(8, 4, 16 * 31 * 8)]})
    assert woken[4][-1] == LEAVES + 2 + 16 * 32 + 1
    assert max(woken[0][0], woken[8][0]) > SENDS + 9 * 32


def test_multicast_reaches_everyone_over_each_link_once() -> None:
    places = [1, 2, 4, 6]
    listed = np.array([[pe, DATA] for pe in places], "<u4").tobytes()
    cast = replace(send(0, 0, 64), kind=1 | MULTICAST, destination_pe=RESULTS + 0x800, destination=len(places))
    with start({0: [cast]}) as emulator:
        emulator.write_memory(0, RESULTS + 0x800, listed)
        emulator.write_memory(0, DATA, bytes(range(64)))
        run_to_sleep(emulator)
        rung = words(emulator, 0, 1)[0]
        woken = {pe: words(emulator, pe, 2)[1] - rung for pe in places}
        for pe in places:
            assert emulator.read_memory(pe, DATA, 64) == bytes(range(64))
    near = SENDS + 1 + 2 + 1 + 2 + 1 + 6 + 1  # a cycle of fetch and at each router for the list, and a flit
    assert woken == {1: near, 2: near + 3, 4: near, 6: near + 6}  # PE 6 by way of 1 and 2


def test_dram() -> None:
    there = replace(send(0, DRAM, 64), destination_flag=0xFF)
    back = replace(send(DRAM, 1, 64), source_flag=0xFF)
    with start({0: [there, back]}) as emulator:
        emulator.write_memory(0, DATA, bytes(range(64)))
        run_to_sleep(emulator)
        rung, sent, *_ = words(emulator, 0, 9)
        came = words(emulator, 1, 2)[1]
        assert emulator.read_memory(1, DATA, 64) == bytes(range(64))
        assert emulator.read_memory(DRAM, DATA, 64) == bytes(range(64))
    done = LEAVES + 5 + 1 + 10 + 4 + 2 + 2  # whole there, row open, a burst, the acknowledgement
    assert sent - rung == done
    known = done + 6 + 2 + 2 + 1 + 60
    assert came - rung == known + 2 + 2 + 5 + 1


def test_chip_borders(tmp_path: Path) -> None:
    board = board_with(tmp_path, "chips = { columns = 1", "chips = { columns = 2")
    woken = run({0: [send(0, 16, 64)]}, 32, board)  # three hops, then the border: 4 bytes a cycle
    assert woken[0] == [SENDS + 5]
    assert woken[16] == [LEAVES + 3 * 2 + 5 + 1 + 20 + 40 + 5 + 1]


def test_a_border_need_not_carry_whole_bytes_a_cycle(tmp_path: Path) -> None:
    two = board_with(tmp_path, "chips = { columns = 1", "chips = { columns = 2")
    Path(two).write_text(Path(two).read_text().replace("link_bytes_per_cycle = 4", "link_bytes_per_cycle = 2.5"))
    assert run({0: [send(0, 16, 64)]}, 32, two)[16] == [LEAVES + 3 * 2 + 5 + 1 + 32 + 40 + 5 + 1]


def test_chips_of_a_hexagonal_torus_are_linked_around_and_corner_to_corner(tmp_path: Path) -> None:
    torus = 'chip_links = "hexagonal torus"\nchips = { columns = 3, rows = 3 }'
    board = board_with(tmp_path, "chips = { columns = 1, rows = 1 }", torus)
    Path(board).write_text(Path(board).read_text().replace('["emulator", "renode"]', '["emulator"]'))
    there = {1: 2 * 16 + 1, 15: 4 * 16, 16 + 5: 8 * 16 + 9, 3 * 16 + 3: 2 * 16, 8 * 16 + 15: 5}
    woken = run({pe: [send(pe, to, 64)] for pe, to in there.items()}, 144, board)
    ways = Routes(load_board(board))
    assert [sum(link.border for link in ways.path(*each)) for each in there.items()] == [1, 1, 2, 1, 1]
    assert ways.path(15, 4 * 16) == (Link(0, 4, border=True),)
    for pe, to in there.items():
        path = ways.path(pe, to)
        assert woken[to] == [LEAVES + sum(5 + 1 + 20 + 40 if link.border else 2 for link in path) + 5 + 1]


def test_a_border_has_two_links(tmp_path: Path) -> None:
    board = board_with(tmp_path, "chips = { columns = 1", "chips = { columns = 2")
    woken = run({pe: [send(pe, pe + 13, 64)] for pe in (3, 7, 11)}, 32, board)  # each crosses the border in its row
    assert woken[16] == woken[20] == [LEAVES + 5 + 1 + 20 + 40 + 5 + 1]
    assert woken[24] == [LEAVES + 5 + 1 + 20 + 20 + 40 + 5 + 1]


def test_numbers_within_a_chip_mean_the_sender_s_own(tmp_path: Path) -> None:
    """PE 17 is the second PE of the second chip. The descriptors of PE 1 have the same effect on both chips."""
    board = board_with(tmp_path, "chips = { columns = 1", "chips = { columns = 2")
    listed = np.array([[THIS_CHIP + pe, DATA] for pe in (2, 5)], "<u4").tobytes()
    out = replace(send(THIS_CHIP + 1, THIS_CHIP + DRAM, 64), destination_flag=0xFF)
    back = replace(send(THIS_CHIP + DRAM, RESULTS + 0x800, 64), kind=1 | MULTICAST, destination=2, source_flag=0xFF)
    with start({1: [out, back], 17: [out, back]}, 32, board) as emulator:
        for first in (0, 16):
            emulator.write_memory(first + 1, RESULTS + 0x800, listed)
            emulator.write_memory(first + 1, DATA, bytes(range(first, first + 64)))
        run_to_sleep(emulator)
        for chip, first in enumerate((0, 16)):
            data = bytes(range(first, first + 64))
            assert emulator.read_memory(DRAM + chip, DATA, 64) == data
            assert [emulator.read_memory(first + pe, DATA, 64) for pe in (2, 5)] == [data, data]


@pytest.mark.parametrize("wrong", [THIS_CHIP + 16, THIS_CHIP + DRAM + 1])
def test_what_the_chip_does_not_have_is_refused(tmp_path: Path, wrong: int) -> None:
    board = board_with(tmp_path, "chips = { columns = 1", "chips = { columns = 2")
    with start({0: [replace(send(0, wrong, 16), destination_flag=0xFF)]}, 32, board) as emulator:
        run_to_sleep(emulator)
        assert emulator.counters(0).device_errors == 1


def test_dead_things_are_refused(tmp_path: Path) -> None:
    dead_pe = board_with(tmp_path, "dead_pes = []", "dead_pes = [5]")
    alive = tuple(pe for pe in range(16) if pe != 5)
    with running((program(PROGRAM), alive), board=dead_pe) as emulator:
        emulator.write_memory(0, DESCRIPTORS, send(0, 5, 16).pack())
        run_to_sleep(emulator)
        assert emulator.counters(0).device_errors == 1
    dead_link = board_with(tmp_path, "dead_links = []", "dead_links = [[1, 2]]")
    with start({0: [send(0, 2, 16)], 2: [send(2, 0, 16)], 4: [send(4, 6, 16)]}, board=dead_link) as emulator:
        run_to_sleep(emulator)
        assert [emulator.counters(pe).device_errors for pe in (0, 2, 4)] == [1, 1, 0]


SERVER = """
#include "board.h"
int main(void)
{
    while (DMA_PE == 0) {
        while (!(UART_STATUS & 1)) {
            wait_for_event();
        }
        (void)UART_DATA;
        DMA_DOORBELL = WORK;
        while (DMA_STATUS & 1) {
        }
        UART_DATA = DMA_ERROR;
    }
    return 0;
}
"""


def random_descriptor(random: np.random.Generator) -> Descriptor:
    source_stride, destination_stride = (int(value) for value in random.integers(-90, 90, 2))
    return Descriptor(
        source_pe=int(random.integers(0, 16)),
        source=0x1_4000 + int(random.integers(0, 64)),
        destination_pe=int(random.integers(0, 16)),
        destination=0x1_8000 + int(random.integers(0, 64)),
        row_bytes=int(random.integers(1, 70)),
        rows=int(random.integers(1, 12)),
        source_stride=source_stride,
        destination_stride=destination_stride,
    )


def test_random_copies_leave_the_same_bytes() -> None:
    random = np.random.default_rng(3)
    first, last = 0x1_3000, 0x1_A000
    with running((program(SERVER), tuple(range(16)))) as emulator:
        for _ in range(200):
            descriptor = random_descriptor(random)
            pes = {descriptor.source_pe, descriptor.destination_pe}
            memories = {pe: random.integers(0, 256, 0x2_0000, np.uint8) for pe in pes}
            for pe, memory in memories.items():
                emulator.write_memory(pe, first, memory[first:last].tobytes())
            emulator.write_memory(0, DESCRIPTORS, descriptor.pack())
            emulator.write(b"!")
            assert emulator.read(20) == b"\0"  # long after the last byte has arrived
            copy(memories, descriptor)
            for pe, memory in memories.items():
                assert emulator.read_memory(pe, first, last - first) == memory[first:last].tobytes(), descriptor


def test_dma_takes_the_port_from_the_mac_array() -> None:
    """PE 1's MAC array works for thousands of cycles while PE 0 sends 100 flits into its SRAM."""
    source = """
#include "board.h"
int main(void)
{
    if (DMA_PE == 0) {
        wait_for_event();
    } else {
        ARRAY_DOORBELL = WORK + 64U;
        DMA_DOORBELL = WORK;
        while (ARRAY_STATUS & 1) {
            wait_for_event();
        }
        RESULTS[0] = ARRAY_BUSY_CYCLES;
    }
    return 0;
}
"""
    add = Command(kind=Kind.ADD, output_height=32, output_width=32, output_channels=16, input=DATA, weights=DATA)
    add = replace(add, parameters=DATA, output=0x1_8000, output_row_stride=512, output_pixel_stride=16)
    busy = []
    for size in (0, 1600):
        with running((program(source), (0, 1))) as emulator:
            fetch = replace(send(0, 1, size), destination=0x1_4000, source_flag=0xFF)
            emulator.write_memory(1, DESCRIPTORS, fetch.pack())
            emulator.write_memory(1, DESCRIPTORS + 64, add.pack())
            run_to_sleep(emulator)
            busy += words(emulator, 1, 1)
    alone = 28 + 1 + 12 * 32 * 32 + 8 + 12
    assert busy == [alone + 2, alone + 2 + 100]  # the descriptor takes two cycles, an empty copy no further one


POLLING_RING = """
#include "board.h"
static _Alignas(16) uint32_t descriptor[12];
int main(void)
{
    const uint32_t pe = DMA_PE, next = (pe + 1U) % 16U;
    const uint32_t fields[12] = {0, 1, pe, 0, next, 0, 0, 0, 0, 0x01FFU, 0, 0};
    for (uint32_t i = 0; i < 12; i++) {
        ((volatile uint32_t *)descriptor)[i] = fields[i];
    }
    for (uint32_t round = 1; round <= 8; round++) {
        uint32_t now;
        __asm volatile(
            "dsb\\n0: ldr %0, [%1]\\n\\tcmp %0, %2\\n\\tblo 0b\\n\\tldr %0, [%3]\\n\\tnop\\n\\tstr %4, [%5]"
            : "=&r"(now) : "r"(0xE2000104U), "r"(pe == 0 ? round - 1U : round), "r"(0xE1000000U), "r"(descriptor),
              "r"(0xE2000000U) : "cc", "memory");
        RESULTS[round] = now;
    }
    return 0;
}
"""


def test_whoever_polls_sees_a_flag_at_the_cycle_it_changes() -> None:
    """Sixteen PEs poll at once, each for the PE before it. None sees a flag early or late, in any order."""
    with running((program(POLLING_RING), tuple(range(16)))) as emulator:
        run_to_sleep(emulator)
        rung = [words(emulator, pe, 9)[1:] for pe in range(16)]
    for turn in range(1, 16 * 8):
        before, pe = (turn - 1) % 16, turn % 16
        hops = abs(pe % 4 - before % 4) + abs(pe // 4 - before // 4)
        comes = rung[before][(turn - 1) // 16] + 3 + LEAVES + 2 * hops + 1 + 1
        # The successful poll starts 4 cycles before the time is read; polls are 5 cycles apart.
        assert 0 <= rung[pe][turn // 16] - 4 - comes < 5, turn


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"kind": 2}, 3),
        ({"destination_pe": 16}, 4),
        ({"source": 0x2_0000}, 5),
        ({"destination": 0x1_FFF8}, 5),
        ({"source_flag": 64}, 6),
        ({"source_pe": 1}, 6),
        ({"kind": 1 | MULTICAST, "destination_pe": DATA, "destination": 0}, 5),
        ({"kind": 1 | MULTICAST, "destination_pe": DATA, "destination": 1, "source": 0x1_8000}, 4),
    ],
)
def test_errors(wrong: dict[str, int], error: int) -> None:
    source = """
#include "board.h"
int main(void)
{
    DMA_DOORBELL = WORK;
    wait_for_event();
    RESULTS[0] = DMA_STATUS;
    RESULTS[1] = DMA_ERROR;
    DMA_ERROR = 0;
    RESULTS[2] = DMA_STATUS;
    DMA_DOORBELL = WORK + 4U;
    wait_for_event();
    RESULTS[3] = DMA_ERROR;
    return 0;
}
"""
    with running((program(source), (0,))) as emulator:
        emulator.write_memory(0, DATA, DRAM.to_bytes(4, "little"))  # a DRAM in a list
        emulator.write_memory(0, DESCRIPTORS, replace(send(0, 1, 64), **wrong).pack())
        run_to_sleep(emulator)
        assert words(emulator, 0, 4) == [2, error, 0, 2]


def test_rows_that_overlap_may_name_more_bytes_than_there_is_memory() -> None:
    """Copies the same 32 KB 63 times to 300 places, the first 15 of 60 at once: the 600 MB are not moved."""
    places = [(1 + number % 15, DATA) for number in range(300)]
    listed = b"".join(pe.to_bytes(4, "little") + address.to_bytes(4, "little") for pe, address in places)
    every = Descriptor(kind=1 | MULTICAST, source=DATA, destination_pe=DATA, destination=300, row_bytes=0x8000, rows=63)
    with start({0: [every]}) as emulator:
        emulator.write_memory(0, DATA, listed)
        emulator.write_memory(0, DATA + 0x7FFC, b"last")
        run_to_sleep(emulator)
        assert {emulator.read_memory(pe, DATA + 0x7FFC, 4) for pe in range(16)} == {b"last"}


@pytest.mark.parametrize(("fault", "errors"), [("drop", [0, 1]), ("duplicate", [1, 1]), ("flip", [1, 1])])
def test_faults_on_a_link_are_errors_of_the_receiver(fault: str, errors: list[int]) -> None:
    """A lost message shows with the next one. No flag counts behind a fault."""
    for messages, error in enumerate(errors, 1):
        plan = FaultPlan.model_validate({"fault": [{"kind": fault, "packet": 0}]})
        with start({0: [send(0, 1, 64)] * messages}, plan=plan) as emulator:
            emulator.write_memory(0, DATA, b"!" * 64)
            run_to_sleep(emulator)
            assert emulator.counters(1).device_errors == error
            arrived = emulator.read_memory(1, DATA, 64) != bytes(64)
            assert arrived == (fault == "duplicate")


AGAIN = """
#include "board.h"
int main(void)
{
    DMA_DOORBELL = WORK;
    while (DMA_PE == 0 && DMA_ERROR == 0) {
    }
    if (DMA_PE == 0) {
        RESULTS[0] = DMA_ERROR;
        DMA_ERROR = 0;
        DMA_DOORBELL = WORK + 48;
        while (DMA_STATUS & 1U) {
        }
        RESULTS[1] = DMA_COMPLETED;
        RESULTS[2] = DMA_ERROR;
    }
    return 0;
}
"""


def test_a_chain_behind_an_error_is_sent_though_the_error_ended_a_message_half_way() -> None:
    """A wrong CRC ends the long message of PE 0. Its next chain is another message, and no rest of the first."""
    plan = FaultPlan.model_validate({"fault": [{"kind": "flip", "from": 2, "packet": 0}]})
    chains = {0: [send(0, 1, 16 * 31 * 20), replace(send(0, 3, 64), source=DATA + 64)], 2: [send(2, 0, 64)]}
    with running((program(AGAIN), (0, 2)), board="pe-mesh", plan=plan) as emulator:
        for pe, chain in chains.items():
            emulator.write_memory(pe, DESCRIPTORS, b"".join(descriptor.pack() for descriptor in chain))
        emulator.write_memory(0, DATA + 64, bytes(range(64)))
        emulator.write_memory(1, DATA, bytes(64))
        run_to_sleep(emulator)
        assert words(emulator, 0, 3) == [7, 1, 0]
        assert emulator.read_memory(3, DATA, 64) == bytes(range(64))
        assert emulator.read_memory(1, DATA, 64) == bytes(64)
